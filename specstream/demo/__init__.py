"""The demo: a year of flights through Spark and two operators, compared with the sequential run."""

from specstream.demo.show import run_demo

__all__ = ["run_demo"]

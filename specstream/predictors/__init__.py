"""What moves horizon and chunk."""

from specstream.predictors.predictor import Decision, Measurement, Predictor, Setting

__all__ = ["Decision", "Measurement", "Predictor", "Setting"]

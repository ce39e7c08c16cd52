"""Where Spark keeps the state of ``transformWithState``, which needs RocksDB for it."""

STATE_STORE = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"

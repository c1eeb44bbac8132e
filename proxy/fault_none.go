//go:build !fault_torn

package proxy

// wholePipelines is where a planted fault (see batcher/fault_none.go) lets the rest of a pipeline run
// after one of its commands has failed. In every other build nothing of it does.
const wholePipelines = true

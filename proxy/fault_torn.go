//go:build fault_torn

package proxy

// wholePipelines: the rest of a pipeline runs although one of its commands has failed.
const wholePipelines = false

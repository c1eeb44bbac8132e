package result

// The quantities of a sample, to be given to Median and Spread.

// Ops is commands per second.
func Ops(s Sample) float64 { return s.Ops }

// P50 is the median latency.
func P50(s Sample) float64 { return s.P50 }

// P99 is the latency that one command in a hundred exceeds.
func P99(s Sample) float64 { return s.P99 }

// P999 is the latency that one command in a thousand exceeds.
func P999(s Sample) float64 { return s.P999 }

// RedisCPU is the server's processor time per command.
func RedisCPU(s Sample) float64 { return s.RedisCPU }

// ProxyCPU is the proxy's processor time per command, 0 for direct.
func ProxyCPU(s Sample) float64 { return s.ProxyCPU }

// ClientCPU is the generator's processor time per command.
func ClientCPU(s Sample) float64 { return s.ClientCPU }

// Batch is commands per write to the server.
func Batch(s Sample) float64 { return s.Batch }

// WaitP90 is the wait that one delayed batch in ten exceeds.
func WaitP90(s Sample) float64 { return s.WaitP90 }

// More is one of the quantities that only some benchmarks have.
func More(name string) func(Sample) float64 {
	return func(s Sample) float64 { return s.More[name] }
}

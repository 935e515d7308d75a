package worker

import "io"

// ServeUntil is Serve for a worker that is replaced after so many evaluations, or when a garbage collection leaves so many bytes.
func ServeUntil(in io.Reader, out io.Writer, l Limits, evaluations int, live uint64) error {
	return serve(in, out, l, wear{evaluations, live})
}

// Processes returns how many workers there are, those that are being started included.
func (p *Pool) Processes() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.allBusy() + len(p.idle)
}

// Busy returns how many workers a namespace has.
func (p *Pool) Busy(namespace string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.busy[namespace]
}

// Idle returns the numbers of the processes of the workers that do nothing.
func (p *Pool) Idle() []int {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []int
	for _, w := range p.idle {
		out = append(out, w.cmd.Process.Pid)
	}
	return out
}

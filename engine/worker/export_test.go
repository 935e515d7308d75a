package worker

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

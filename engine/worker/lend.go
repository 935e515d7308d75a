package worker

import (
	"context"
	"sync"
)

// A process that examines a package needs about the memory of a worker. If both had theirs at the same
// time as the others, all of them together could take more than the container has, and the system would
// kill the operator.

// Lend gives the room of one worker away, until the caller calls release. It waits until no more than the
// other workers are busy. A pool of one worker has none to give away, and lends at once: evaluations go on
// meanwhile. It errors if the context ends before, or the pool is closed.
func (p *Pool) Lend(ctx context.Context) (release func(), err error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, errClosed
	}
	p.borrowers++
	free := make(chan struct{})
	p.lending = append(p.lending, free)
	p.endIdle()
	p.lendRoom()
	p.mu.Unlock()
	release = sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.borrowers--
		p.assign()
	})
	select {
	case <-free:
		return release, nil
	case <-ctx.Done():
		release()
		return nil, ctx.Err()
	}
}

// size returns how many workers there may be now. All borrowers together have the room of one.
func (p *Pool) size() int {
	if p.borrowers > 0 && p.options.Size > 1 {
		return p.options.Size - 1
	}
	return p.options.Size
}

// lendRoom tells those who wait for room if there is some.
func (p *Pool) lendRoom() {
	if p.closed || p.allBusy() <= p.size() {
		for _, free := range p.lending {
			close(free)
		}
		p.lending = nil
	}
}

// allBusy returns how many workers are busy.
func (p *Pool) allBusy() int {
	all := 0
	for _, n := range p.busy {
		all += n
	}
	return all
}

// endIdle ends idle workers, the one that was not used for longest first, while there are too many.
func (p *Pool) endIdle() {
	for len(p.idle) > 0 && p.allBusy()+len(p.idle) > p.size() {
		p.idle[0].idle.Stop()
		p.idle[0].close()
		p.idle = p.idle[1:]
	}
}

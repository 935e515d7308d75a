package worker

import (
	"context"
	"slices"
	"sync"
)

// A process that examines a package needs about the memory of a worker. If both had theirs at the same
// time as the others, all of them together could take more than the container has, and the system would
// kill the operator.

// Lend gives the memory of one worker to the caller until it calls release. It waits until no more than the other
// workers are busy, and until one of those is left for short evaluations: if an evaluation hung in the last one,
// every resource would wait. A pool of one worker cannot spare it, and lends at once, while evaluations continue. It
// errors if the context ends first, or if the pool is closed.
func (p *Pool) Lend(ctx context.Context) (release func(), err error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, errClosed
	}
	free := make(chan struct{})
	p.asking = append(p.asking, free)
	p.endIdle()
	p.lendRoom()
	p.mu.Unlock()
	select {
	case <-free:
		return sync.OnceFunc(p.takeRoomBack), nil
	case <-ctx.Done():
		p.stopAsking(free)
		return nil, ctx.Err()
	}
}

// takeRoomBack ends one loan.
func (p *Pool) takeRoomBack() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.borrowers--
	p.assign()
}

// stopAsking takes back what somebody asked for who does not wait any more.
func (p *Pool) stopAsking(free chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at := slices.Index(p.asking, free); at >= 0 {
		p.asking = slices.Delete(p.asking, at, at+1)
	} else {
		p.borrowers--
	}
	p.assign()
}

// size returns how many workers there may be now. All borrowers together have the room of one, and nobody takes it once they ask for it, unless they
// cannot have it yet.
func (p *Pool) size() int {
	if p.options.Size > 1 && (p.borrowers > 0 || len(p.asking) > 0 && !p.holdsUp()) {
		return p.options.Size - 1
	}
	return p.options.Size
}

// holdsUp reports whether those whose evaluations are expensive would have all workers if one were lent.
func (p *Pool) holdsUp() bool {
	return p.options.Size > 1 && p.use(p.options.Size).expensive >= p.options.Size-1
}

// lendRoom tells those who ask for room if there is some.
func (p *Pool) lendRoom() {
	if !p.closed && p.borrowers == 0 && (p.holdsUp() || p.allBusy() > p.size()) {
		return
	}
	for _, free := range p.asking {
		p.borrowers++
		close(free)
	}
	p.asking = nil
	p.endIdle()
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

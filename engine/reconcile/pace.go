package reconcile

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// pace remembers when each resource's status was last written; its zero value is
// ready for use.
type pace struct {
	mu   sync.Mutex
	last map[types.NamespacedName]time.Time
}

// wait returns how long progress has to be held back, or 0.
func (p *pace) wait(key types.NamespacedName, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	last, ok := p.last[key]
	if !ok {
		return 0
	}
	return max(0, ProgressEvery-now.Sub(last))
}

func (p *pace) wrote(key types.NamespacedName, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last == nil {
		p.last = map[types.NamespacedName]time.Time{}
	}
	p.last[key] = now
}

func (p *pace) forget(key types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.last, key)
}

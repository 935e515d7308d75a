// Package faulty is a cluster in memory that fails as planned: the process dies after a write, the response of a
// write is lost, a write is refused once, or the cache shows what was there before. It is for the tests of packages
// and of the engine; nothing fails on its own.
//
//	c := faulty.New(memory, memory)
//	c.InjectFaults(faulty.Plan{CrashAfter: []int{3}})
//	... // the third write is the last one, and then every call errors with ErrCrash
//	c.Restart()
package faulty

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/cluster/memory"
)

var (
	// ErrCrash is what every call returns once the process has died.
	ErrCrash = errors.New("the process is dead")
	// ErrLost is what a write returns that was carried out, and whose response was lost.
	ErrLost = errors.New("timeout: the response was lost")
)

// A Plan says what fails at which write. Writes are counted from 1; 0 is never.
type Plan struct {
	// CrashAfter are the writes after which the process dies. Each is counted from the start of the process.
	CrashAfter []int
	// LoseAt and RefuseAt are the write whose response is lost, and the write that the API server answers with an
	// error and does not carry out. They are counted over all processes, and refused writes count.
	LoseAt, RefuseAt int
}

// String names the plan, as in "crash after write 3 then 1".
func (p Plan) String() string {
	var out []string
	if len(p.CrashAfter) > 0 {
		out = append(out, "crash after write "+strings.Trim(strings.ReplaceAll(fmt.Sprint(p.CrashAfter), " ", " then "), "[]"))
	}
	if p.LoseAt > 0 {
		out = append(out, fmt.Sprintf("response of write %d lost", p.LoseAt))
	}
	if p.RefuseAt > 0 {
		out = append(out, fmt.Sprintf("write %d refused", p.RefuseAt))
	}
	return strings.Join(out, ", ")
}

// Cluster is a cluster.Cluster that fails as planned. It is for one goroutine.
type Cluster struct {
	cluster.Interceptor

	memory *memory.Cluster
	plan   Plan
	// sinceStart and total count the writes, since the start of the process and of the plan, and verbs all of them by
	// what they were.
	sinceStart, total int
	verbs             map[string]int
	dead              bool
	// frozen is what the cache shows, if it shows an earlier state.
	frozen *memory.Cluster
	// after is called after each write that was carried out, if it is not nil.
	after func()
}

// New returns a cluster that writes to and reads from another one, which is the given one in memory or a part of it.
func New(c cluster.Cluster, m *memory.Cluster) *Cluster {
	f := &Cluster{memory: m, verbs: map[string]int{}}
	f.Interceptor = cluster.Interceptor{Cluster: c, Intercept: f.write}
	return f
}

// InjectFaults sets the plan, and counts writes anew. The zero Plan lets nothing fail.
func (f *Cluster) InjectFaults(p Plan) {
	p.CrashAfter = slices.Clone(p.CrashAfter)
	f.plan, f.sinceStart, f.total = p, 0, 0
}

// AfterWrite sets what is called after each write that was carried out; nil is nothing.
func (f *Cluster) AfterWrite(do func()) { f.after = do }

// FreezeCache lets cached reads return the present state from now on. They do not even show what this process
// writes, which is harder than on an API server.
func (f *Cluster) FreezeCache() { f.frozen = f.memory.Clone() }

// ThawCache ends FreezeCache.
func (f *Cluster) ThawCache() { f.frozen = nil }

// Writes returns how many writes there were since InjectFaults, with those that failed as planned.
func (f *Cluster) Writes() int { return f.total }

// Pending returns what of the plan has not happened yet, or the zero Plan.
func (f *Cluster) Pending() Plan {
	out := Plan{CrashAfter: slices.Clone(f.plan.CrashAfter)}
	if f.plan.LoseAt > f.total {
		out.LoseAt = f.plan.LoseAt
	}
	if f.plan.RefuseAt > f.total {
		out.RefuseAt = f.plan.RefuseAt
	}
	return out
}

// Verbs returns how many writes were carried out by what they were, such as "apply". It must not be changed.
func (f *Cluster) Verbs() map[string]int { return f.verbs }

// Dead reports whether the process has died.
func (f *Cluster) Dead() bool { return f.dead }

// Restart starts a new process. It must have died as planned.
func (f *Cluster) Restart() {
	f.dead, f.sinceStart = false, 0
	f.plan.CrashAfter = f.plan.CrashAfter[1:]
}

// write carries a write out, and lets it fail when it is its turn.
func (f *Cluster) write(_ context.Context, w cluster.Write, do func(cluster.Cluster) error) error {
	if f.dead {
		return ErrCrash
	}
	if f.plan.RefuseAt > 0 && f.total+1 == f.plan.RefuseAt {
		f.total++
		return apierrors.NewInternalError(errors.New("the write was refused as planned"))
	}
	if err := do(f.Cluster); err != nil {
		return err
	}
	f.sinceStart++
	f.total++
	f.verbs[w.Verb]++
	if f.after != nil {
		f.after()
	}
	switch {
	case len(f.plan.CrashAfter) > 0 && f.sinceStart == f.plan.CrashAfter[0]:
		f.dead = true
		return ErrCrash
	case f.plan.LoseAt > 0 && f.total == f.plan.LoseAt:
		return ErrLost
	}
	return nil
}

// Probe implements cluster.Cluster.
func (f *Cluster) Probe(ctx context.Context, o *unstructured.Unstructured) error {
	if f.dead {
		return ErrCrash
	}
	return f.Cluster.Probe(ctx, o)
}

// GetCached implements cluster.Cluster.
func (f *Cluster) GetCached(ctx context.Context, ref cluster.Ref) (*unstructured.Unstructured, error) {
	switch {
	case f.dead:
		return nil, ErrCrash
	case f.frozen != nil:
		return f.frozen.GetCached(ctx, ref)
	}
	return f.Cluster.GetCached(ctx, ref)
}

// GetLive implements cluster.Cluster.
func (f *Cluster) GetLive(ctx context.Context, ref cluster.Ref) (*unstructured.Unstructured, error) {
	if f.dead {
		return nil, ErrCrash
	}
	return f.Cluster.GetLive(ctx, ref)
}

// ListCached implements cluster.Cluster.
func (f *Cluster) ListCached(ctx context.Context, s cluster.Selection) ([]*unstructured.Unstructured, error) {
	switch {
	case f.dead:
		return nil, ErrCrash
	case f.frozen != nil:
		return f.frozen.ListCached(ctx, s)
	}
	return f.Cluster.ListCached(ctx, s)
}

// ListLive implements cluster.Cluster.
func (f *Cluster) ListLive(ctx context.Context, s cluster.Selection) ([]*unstructured.Unstructured, error) {
	if f.dead {
		return nil, ErrCrash
	}
	return f.Cluster.ListLive(ctx, s)
}

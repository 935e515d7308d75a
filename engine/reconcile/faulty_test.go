package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/cluster/memory"
	"operetta.dev/engine/rollout"
)

// errCrash is what every call answers once the process is dead, and errLost what a
// write answers that was carried out and whose response was lost.
var (
	errCrash = errors.New("the process is dead")
	errLost  = errors.New("timeout: the response was lost")
)

// A fault says what goes wrong at which write; 0 is never.
type fault struct {
	crashAfter []int
	loseAt     int
	// away means that the process stays dead until the person has done the next
	// thing.
	away bool
}

// String is the plan's name, by which a test replays it.
func (f fault) String() string {
	if f.loseAt > 0 {
		return fmt.Sprintf("response of write %d lost", f.loseAt)
	}
	parts := make([]string, len(f.crashAfter))
	for i, k := range f.crashAfter {
		parts[i] = fmt.Sprint(k)
	}
	name := "crash after write " + strings.Join(parts, " then ")
	if f.away {
		name += " and away for a while"
	}
	return name
}

// faulty is a cluster and store whose writes can go wrong.
type faulty struct {
	*memory.Cluster
	writes int
	total  int
	// verbs counts the writes by what they were.
	verbs map[string]int
	fault fault
	dead  bool
}

// write carries a write out and makes it go wrong when it is its turn.
func (f *faulty) write(verb string, do func() error) error {
	if f.dead {
		return errCrash
	}
	if err := do(); err != nil {
		return err
	}
	f.writes++
	f.total++
	f.verbs[verb]++
	if len(f.fault.crashAfter) > 0 && f.writes == f.fault.crashAfter[0] {
		f.dead = true
		return errCrash
	}
	if f.total == f.fault.loseAt {
		return errLost
	}
	return nil
}

// restart is a new process.
func (f *faulty) restart() {
	f.dead = false
	f.writes = 0
	f.fault.crashAfter = f.fault.crashAfter[1:]
}

func (f *faulty) Apply(ctx context.Context, o *unstructured.Unstructured) (out *unstructured.Unstructured, err error) {
	err = f.write("apply", func() error {
		out, err = f.Cluster.Apply(ctx, o)
		return err
	})
	return out, err
}

func (f *faulty) Delete(ctx context.Context, ref cluster.Ref, uid types.UID) error {
	return f.write("delete", func() error { return f.Cluster.Delete(ctx, ref, uid) })
}

func (f *faulty) Replace(ctx context.Context, o *unstructured.Unstructured) (out *unstructured.Unstructured, err error) {
	err = f.write("replace", func() error {
		out, err = f.Cluster.Replace(ctx, o)
		return err
	})
	return out, err
}

func (f *faulty) HandOver(ctx context.Context, fields *unstructured.Unstructured) error {
	return f.write("relinquish", func() error { return f.Cluster.HandOver(ctx, fields) })
}

func (f *faulty) Probe(ctx context.Context, o *unstructured.Unstructured) error {
	if f.dead {
		return errCrash
	}
	return f.Cluster.Probe(ctx, o)
}

func (f *faulty) GetCached(ctx context.Context, ref cluster.Ref) (*unstructured.Unstructured, error) {
	if f.dead {
		return nil, errCrash
	}
	return f.Cluster.GetCached(ctx, ref)
}

func (f *faulty) GetLive(ctx context.Context, ref cluster.Ref) (*unstructured.Unstructured, error) {
	if f.dead {
		return nil, errCrash
	}
	return f.Cluster.GetLive(ctx, ref)
}

func (f *faulty) ApplyStatus(ctx context.Context, u *unstructured.Unstructured) error {
	return f.write("status", func() error { return f.Cluster.ApplyStatus(ctx, u) })
}

func (f *faulty) ApplyFinalizers(ctx context.Context, u *unstructured.Unstructured) error {
	return f.write("finalizers", func() error { return f.Cluster.ApplyFinalizers(ctx, u) })
}

// quiet records nothing.
type quiet struct{}

func (quiet) Record(*unstructured.Unstructured, rollout.Event) {}

package capsule

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/plan"
)

// Annotation marks, with the value "true", the custom resources that an operator records if it records only marked
// ones.
const Annotation = "operetta.dev/record"

// Options say what is recorded.
type Options struct {
	// Dir is the folder of the capsules.
	Dir string
	// Decisions is how many capsules of one resource are kept, and Bytes how much all take.
	Decisions int
	Bytes     int64
	// Annotated records only resources that have the Annotation.
	Annotated bool
	// ConfigMap and Allow are those of the operator.
	ConfigMap types.NamespacedName
	Allow     []string
	Log       logr.Logger
}

// maxPending is how many reconciles wait to be written. They share what they have read with the caches.
const maxPending = 16

// A Recorder records reconciles. The decisions are made and written one by one, in the background: a reconcile never
// waits for them, and reconciles that come too fast are dropped. A nil Recorder records nothing. It is safe for
// concurrent use.
type Recorder struct {
	options Options
	store   *store
	pending chan step
	dropped atomic.Int64
}

// A Step is a reconcile that has ended.
type Step struct {
	Kind schema.GroupVersionKind
	Key  types.NamespacedName
	// Version returns the version of the package that was run, evaluated until a context ends.
	Version func(context.Context) plan.Version
	// Err is why it is retried, or nil.
	Err error
}

// ref returns the identity of the resource.
func (s Step) ref() cluster.Ref {
	return cluster.Ref{GroupVersionKind: s.Kind, Namespace: s.Key.Namespace, Name: s.Key.Name}
}

// step is a Step with what it has read.
type step struct {
	Step

	reading *Reading
}

// NewRecorder returns a recorder. It errors if the folder cannot be made or read.
func NewRecorder(o Options) (*Recorder, error) {
	s, err := openStore(o.Dir, o.Decisions, o.Bytes)
	if err != nil {
		return nil, err
	}
	return &Recorder{options: o, store: s, pending: make(chan step, maxPending)}, nil
}

// Cluster returns a cluster that reconciles use for another one, so that what they read and write is recorded.
func (r *Recorder) Cluster(c cluster.Cluster) cluster.Cluster {
	if r == nil {
		return c
	}
	return newRecorded(c)
}

// Begin returns the context of a reconcile that is recorded, and what it reads.
func (r *Recorder) Begin(ctx context.Context) (context.Context, *Reading) {
	if r == nil {
		return ctx, nil
	}
	reading := &Reading{
		began:   time.Now(),
		objects: map[cluster.Ref]*unstructured.Unstructured{}, lists: map[string]selected{}, scopes: map[schema.GroupKind]cluster.Scope{},
	}
	return context.WithValue(ctx, readingKey{}, reading), reading
}

// End records a reconcile, unless it has decided nothing.
func (r *Recorder) End(reading *Reading, s Step) {
	if r == nil || !reading.decides() || r.options.Annotated && !isAnnotated(reading, s.ref()) {
		return
	}
	select {
	case r.pending <- step{s, reading}:
	default:
		r.dropped.Add(1)
	}
}

// NeedLeaderElection says that a standby has nothing to record.
func (r *Recorder) NeedLeaderElection() bool { return true }

// Start writes capsules until the context ends.
func (r *Recorder) Start(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case s := <-r.pending:
			if n := r.dropped.Swap(0); n > 0 {
				r.options.Log.Info("decisions were not recorded, because there are too many at once", "decisions", n)
			}
			if err := r.record(logr.NewContext(ctx, logr.Discard()), s); err != nil && ctx.Err() == nil {
				r.options.Log.Info("a decision was not recorded", "kind", s.Kind.Kind, "resource", s.Key.String(), "reason", err.Error())
			}
		}
	}
}

// record writes the capsule of a reconcile.
func (r *Recorder) record(ctx context.Context, s step) (err error) {
	defer func() {
		if cause := recover(); cause != nil { // its text may have a value of a Secret
			err = errors.New("deciding it again has panicked")
		}
	}()
	ref := s.ref()
	version := s.Version(ctx)
	d := s.reading.dump(version.Program.Name(), ref)
	if d == nil {
		return nil
	}
	snapshot := version.Program.Snapshot()
	prefix := snapshot.DisplayPrefix()
	var objects bytes.Buffer
	if err := d.Write(&objects); err != nil {
		return err
	}
	c := &Capsule{
		Format: Format, Package: version.Program.Name(), Digest: version.Program.Digest(), Resource: resourceOf(ref), DisplayPrefix: &prefix, Overlays: snapshot.OverlayFiles(),
		Taken: s.reading.began.UTC().Truncate(time.Millisecond), Allow: r.options.Allow, Did: s.reading.acts(), Objects: objects.Bytes(),
	}
	if r.options.ConfigMap.Name != "" {
		c.ConfigMap = r.options.ConfigMap.String()
	}
	if s.Err != nil {
		c.Failed = failure(s.Err)
	}
	if c.Decision, c.Missing, err = c.Decide(ctx, version); err != nil {
		return fmt.Errorf("deciding it again: %w", err)
	}
	text, err := c.encode()
	if err != nil {
		return err
	}
	return r.store.write(c, text)
}

// isAnnotated reports whether the resource of a reconcile asks to be recorded.
func isAnnotated(reading *Reading, ref cluster.Ref) bool {
	reading.mu.Lock()
	defer reading.mu.Unlock()
	return reading.objects[ref.Identity()].GetAnnotations()[Annotation] == "true"
}

// failure returns why a reconcile is retried or a write is refused, without the text of the API server, which may quote what was written.
func failure(err error) string {
	if reason := apierrors.ReasonForError(err); reason != "" {
		return string(reason)
	}
	return "error"
}

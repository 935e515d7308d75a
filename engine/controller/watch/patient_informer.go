package watch

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
)

// newPatientInformer returns the constructor of the informers of a cache. If the operator may not list or
// watch a kind, such an informer tries again in an even interval, so that it runs soon after the
// permission is given. It reads unstructured objects from streams. note is called with the kind and the error of each try,
// and may with whether the kind may be read, as far as a try has shown it; both may be nil.
func newPatientInformer(log logr.Logger, from *streams, note func(kind string, err error), may func(kind string, may bool)) func(toolscache.ListerWatcher, runtime.Object, time.Duration, toolscache.Indexers) toolscache.SharedIndexInformer {
	return func(usual toolscache.ListerWatcher, object runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
		from := from.orDefault(object, usual)
		patient := &patientListerWatcher{
			ListerWatcher: from, from: toolscache.ToListerWatcherWithContext(from), pause: refusedInterval, log: log,
			note: note, may: may, kind: object.GetObjectKind().GroupVersionKind().String(),
		}
		return toolscache.NewSharedIndexInformer(patient, object, resync, indexers)
	}
}

// A patientListerWatcher lists and watches a kind as soon as that is allowed.
type patientListerWatcher struct {
	toolscache.ListerWatcher

	from  toolscache.ListerWatcherWithContext
	kind  string
	pause time.Duration
	note  func(string, error)
	may   func(string, bool)
	log   logr.Logger

	mu      sync.Mutex
	refused bool
}

var _ toolscache.ListerWatcherWithContext = (*patientListerWatcher)(nil)

// ListWithContext implements toolscache.ListerWithContext.
func (p *patientListerWatcher) ListWithContext(ctx context.Context, o metav1.ListOptions) (list runtime.Object, err error) {
	p.try(ctx, func() error { list, err = p.from.ListWithContext(ctx, o); return err })
	return list, err
}

// WatchWithContext implements toolscache.WatcherWithContext.
func (p *patientListerWatcher) WatchWithContext(ctx context.Context, o metav1.ListOptions) (events watch.Interface, err error) {
	p.try(ctx, func() error { events, err = p.from.WatchWithContext(ctx, o); return err })
	return events, err
}

// IsWatchListSemanticsUnSupported says whether the client supports lists by a watch. The library looks
// for the method by its name.
func (p *patientListerWatcher) IsWatchListSemanticsUnSupported() bool {
	from, ok := p.ListerWatcher.(interface{ IsWatchListSemanticsUnSupported() bool })
	return ok && from.IsWatchListSemanticsUnSupported()
}

// try calls a function until it is allowed, or fails for another reason.
func (p *patientListerWatcher) try(ctx context.Context, request func() error) {
	for {
		err := request()
		p.report(err)
		if !apierrors.IsForbidden(err) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(p.pause):
		}
	}
}

// report says what came of a try. The log has the first refusal of several, and their end.
func (p *patientListerWatcher) report(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	refused := apierrors.IsForbidden(err)
	if refused && p.note != nil {
		p.note(p.kind, err)
	}
	if p.may != nil && (refused || err == nil) {
		p.may(p.kind, !refused)
	}
	if refused && !p.refused {
		p.log.Info("a kind cannot be read: the operator lacks a permission", "kind", p.kind, "error", err.Error())
	}
	if !refused && p.refused && err == nil {
		p.log.Info("a kind can be read now", "kind", p.kind)
	}
	p.refused = refused || p.refused && err != nil
}

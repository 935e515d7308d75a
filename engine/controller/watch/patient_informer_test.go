package watch

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
)

// scriptedLister answers lists and watches with errors, one after the other, and then with success.
type scriptedLister struct{ errs []error }

func (s *scriptedLister) next() error {
	if len(s.errs) == 0 {
		return nil
	}
	err := s.errs[0]
	s.errs = s.errs[1:]
	return err
}

func (s *scriptedLister) listWatch() *toolscache.ListWatch {
	return &toolscache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			return &metav1.PartialObjectMetadataList{}, s.next()
		},
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return watch.NewFake(), s.next() },
	}
}

func TestAListThatIsRefusedIsTriedInAnEvenInterval(t *testing.T) {
	t.Parallel()
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "", nil)
	other := errors.New("connection refused")
	for name, tc := range map[string]struct {
		reason string
		errs   []error
		want   error
		took   time.Duration
		noted  int
	}{
		"Allowed":   {"nothing is delayed", nil, nil, 0, 0},
		"Refused":   {"the delay does not grow", []error{forbidden, forbidden, forbidden, forbidden, forbidden}, nil, 5 * refusedInterval, 5},
		"OtherFail": {"other errors are the library's to retry", []error{other}, other, 0, 0},
		"Mixed":     {"an outage ends the patience", []error{forbidden, other}, other, refusedInterval, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for verb, try := range map[string]func(context.Context, *patientListerWatcher) error{
				"list": func(ctx context.Context, p *patientListerWatcher) error {
					_, err := p.ListWithContext(ctx, metav1.ListOptions{})
					return err
				},
				"watch": func(ctx context.Context, p *patientListerWatcher) error {
					_, err := p.WatchWithContext(ctx, metav1.ListOptions{})
					return err
				},
			} {
				synctest.Test(t, func(t *testing.T) {
					noted := 0
					from := (&scriptedLister{errs: tc.errs}).listWatch()
					p := &patientListerWatcher{ListerWatcher: from, from: from, pause: refusedInterval, log: logr.Discard(), note: func(string, error) { noted++ }}
					began := time.Now()
					err := try(t.Context(), p)
					if !errors.Is(err, tc.want) || time.Since(began) != tc.took || noted != tc.noted {
						t.Errorf("%s: %s: %v after %s with %d notes, want %v after %s with %d", verb, tc.reason, err, time.Since(began), noted, tc.want, tc.took, tc.noted)
					}
				})
			}
		})
	}
}

package watch

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/patch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func TestAPatchCanBeReadLive(t *testing.T) {
	t.Parallel()
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(patch.Kind, meta.RESTScopeNamespace)
	stored := NewObject(patch.Kind)
	stored.SetNamespace("default")
	stored.SetName("two-replicas")
	build := func() *fake.ClientBuilder {
		return fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithRESTMapper(mapper)
	}
	p := &patchesIn{cache: Cache{Client: build().Build()}, direct: build().WithObjects(stored).Build()}
	r, err := p.reader(nil, nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := r.GetLive(t.Context(), cluster.RefOf(stored))
	if err != nil || got == nil {
		t.Errorf("read live it is %v, error %v", got, err)
	}
}

// The clock is synctest's. An API server that hangs must not hold one reader of Patches after the other, each for as long as it may take.
func TestReadersOfPatchesWaitForOneAnswerAndNoLongerThanTheyMay(t *testing.T) {
	t.Parallel()
	const second = time.Second
	for name, tc := range map[string]struct {
		reason string
		// may are how long readers may wait, and want is when each of them has an answer.
		may, want []time.Duration
	}{
		"one":              {"it has an answer in time", []time.Duration{time.Minute}, []time.Duration{SyncTimeout}},
		"several":          {"it is one question", []time.Duration{time.Minute, time.Minute, time.Minute}, []time.Duration{SyncTimeout, SyncTimeout, SyncTimeout}},
		"one that ends":    {"its reconcile is over", []time.Duration{second}, []time.Duration{second}},
		"one of them ends": {"the others do not lose what it has asked", []time.Duration{second, time.Minute, 2 * second}, []time.Duration{second, SyncTimeout, 2 * second}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var asked atomic.Int32
				hangs := interceptor.NewClient(fake.NewClientBuilder().WithScheme(runtime.NewScheme()).Build(), interceptor.Funcs{
					List: func(ctx context.Context, _ client.WithWatch, _ client.ObjectList, _ ...client.ListOption) error {
						asked.Add(1)
						<-ctx.Done()
						return ctx.Err()
					},
				})
				p, began := &patchesIn{direct: hangs}, time.Now()
				got := make([]time.Duration, len(tc.may))
				var readers sync.WaitGroup
				for i, may := range tc.may {
					readers.Go(func() {
						ctx, cancel := context.WithTimeout(t.Context(), may)
						defer cancel()
						if state, err := p.known(ctx); err == nil {
							t.Errorf("%s: nobody has answered, and it is %q", tc.reason, state)
						}
						got[i] = time.Since(began)
					})
					synctest.Wait() // in that order
				}
				readers.Wait()
				<-time.After(time.Hour) // the question ends later than who has asked it
				if diff := cmp.Diff(tc.want, got); diff != "" || asked.Load() != 1 {
					t.Errorf("%s: asked %d times, answered (-want +got):\n%s", tc.reason, asked.Load(), diff)
				}
			})
		})
	}
}

// Whoever reads Patches tells their targets that the permission is missing, and has to learn when it comes.
func TestReadersOfPatchesAreToldOfThePermission(t *testing.T) {
	t.Parallel()
	resource := schema.GroupResource{Group: patch.Kind.Group, Resource: "patches"}
	forbidden, absent, broken := apierrors.NewForbidden(resource, "", nil), apierrors.NewNotFound(resource, ""), apierrors.NewInternalError(errNoAnswer)
	for name, tc := range map[string]struct {
		reason  string
		answers []error
		// told is how often the reader is told, and unread says that the permission is missing in the end.
		told   int
		unread bool
	}{
		"never asked":               {"nobody knows", nil, 0, false},
		"allowed":                   {"nobody has missed anything", []error{nil}, 0, false},
		"refused":                   {"who reads has waited for this answer", []error{forbidden}, 0, true},
		"refused again":             {"nothing is new", []error{forbidden, forbidden}, 0, true},
		"refused, then no answer":   {"an API server that is not there gives no permission", []error{forbidden, broken}, 0, true},
		"refused, then allowed":     {"the targets have to lose what they say", []error{forbidden, nil}, 1, false},
		"not served":                {"there are no Patches, so none is missed", []error{absent}, 0, false},
		"not served, then allowed":  {"the targets have said nothing", []error{absent, nil}, 0, false},
		"not served, then refused":  {"the definition came before the role", []error{absent, forbidden}, 1, true},
		"refused, then not served":  {"the definition is gone, and with it what was missed", []error{forbidden, absent}, 1, false},
		"allowed, and refused then": {"what was read counts on, and the watch says that it fails", []error{nil, forbidden}, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			next := 0
			p := &patchesIn{direct: interceptor.NewClient(fake.NewClientBuilder().WithScheme(runtime.NewScheme()).Build(), interceptor.Funcs{
				List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
					next++
					return tc.answers[next-1]
				},
			})}
			told := 0
			p.readers = []*patchReader{{watch: &pendingWatch{}, changed: func() { told++ }}, {watch: &pendingWatch{}}}
			for range tc.answers {
				_, _ = p.ask(t.Context()) // an error is one of the answers
			}
			why := (&Patches{parts: map[string]*patchesIn{"": p}}).Unread("default")
			if told != tc.told || (why != "") != tc.unread || tc.unread && !strings.Contains(why, forbidden.Error()) {
				t.Errorf("%s: told %d times, and unread because %q", tc.reason, told, why)
			}
		})
	}
}

// The clock is synctest's.
func TestPatchesAreLookedAtSoonAfterTheyMayBe(t *testing.T) {
	t.Parallel()
	resource := schema.GroupResource{Group: patch.Kind.Group, Resource: "patches"}
	const ends = 62 * time.Second
	for name, tc := range map[string]struct {
		reason string
		until  error
		// within is how long it takes after the end, and asks how many questions there are at most.
		within time.Duration
		asks   int
	}{
		"forbidden":  {"an operator without Patches is meant by that, and costs next to nothing at rest", apierrors.NewForbidden(resource, "", nil), patchesInterval, 8},
		"not served": {"whoever installs the definition is waited for ever more seldom", apierrors.NewNotFound(resource, ""), patchesInterval, 8},
		"no answer":  {"nobody knows, and resources wait", apierrors.NewInternalError(errNoAnswer), patchesRetry, 64},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began, asked := time.Now(), 0
				direct := interceptor.NewClient(fake.NewClientBuilder().WithScheme(runtime.NewScheme()).Build(), interceptor.Funcs{
					List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
						if asked++; time.Since(began) < ends {
							return tc.until
						}
						return nil
					},
				})
				p := &patchesIn{direct: direct}
				if err := p.Start(t.Context()); err != nil { // it ends once there can be Patches
					t.Fatal(err)
				}
				if late := time.Since(began) - ends; p.state != patchesServed || late > tc.within || asked > tc.asks {
					t.Errorf("%s: it is %q %s after the end, and %d questions", tc.reason, p.state, late, asked)
				}
			})
		})
	}
}

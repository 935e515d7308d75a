package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/cluster"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// An ownerships is an API server that counts requests for lists.
type ownerships struct {
	t *testing.T
	*cluster.Live

	mu      sync.Mutex
	objects []*unstructured.Unstructured
	lists   int
	failure error
	takes   time.Duration // the clock is synctest's
}

// newOwnerships returns an API server with objects of some owners.
func newOwnerships(t *testing.T, owners ...string) *ownerships {
	t.Helper()
	o := &ownerships{t: t}
	mapper := apimeta.NewDefaultRESTMapper(nil)
	for _, kind := range ownable {
		mapper.Add(kind, apimeta.RESTScopeNamespace)
	}
	c := fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithRESTMapper(mapper).WithInterceptorFuncs(interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			return o.list(list, (&client.ListOptions{}).ApplyOptions(options))
		},
		Apply: func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
			return nil
		},
	}).Build()
	o.Live = &cluster.Live{
		Client: c, Direct: c, Kinds: func() ([]schema.GroupVersionKind, error) { return ownable, nil }, Lists: cluster.NewOwnedLists("owner"),
	}
	for _, owner := range owners {
		o.add("shop", owner)
	}
	return o
}

// add adds an object of an owner that somebody else has written, and returns it.
func (o *ownerships) add(namespace, owner string) *unstructured.Unstructured {
	o.mu.Lock()
	defer o.mu.Unlock()
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(ownable[len(o.objects)%len(ownable)])
	u.SetNamespace(namespace)
	u.SetName(fmt.Sprint(owner, len(o.objects)))
	u.SetUID("1")
	u.SetLabels(map[string]string{"owner": owner})
	o.objects = append(o.objects, u)
	return u
}

func (o *ownerships) list(list client.ObjectList, options *client.ListOptions) error {
	<-time.After(o.takes)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lists++
	if o.failure != nil {
		return o.failure
	}
	kind := strings.TrimSuffix(list.GetObjectKind().GroupVersionKind().Kind, "List")
	for _, u := range o.objects {
		if u.GetKind() == kind && u.GetNamespace() == options.Namespace && options.LabelSelector.Matches(labels.Set(u.GetLabels())) {
			found := metav1.PartialObjectMetadata{}
			found.SetName(u.GetName())
			found.SetNamespace(u.GetNamespace())
			found.SetLabels(u.GetLabels())
			into, _ := list.(*metav1.PartialObjectMetadataList)
			into.Items = append(into.Items, found)
		}
	}
	return nil
}

// expectOwned compares what an owner has, and after how many lists of all kinds in all it is known.
func (o *ownerships) expectOwned(reason, namespace, owner string, lists int, want ...string) {
	o.t.Helper()
	found, err := o.Owned(o.t.Context(), namespace, "owner", owner)
	if err != nil {
		o.t.Fatal(err)
	}
	var got []string
	for _, u := range found {
		got = append(got, u.GetName())
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		o.t.Errorf("%s: %s has (-want +got):\n%s", reason, owner, diff)
	}
	if o.lists != lists*len(ownable) {
		o.t.Errorf("%s: %d lists were requested, want %d of each kind", reason, o.lists, lists)
	}
}

func TestManyResourcesThatHaveLostTheirInventoriesShareOneListOfAllKinds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOwnerships(t, "a", "b", "b", "c")
		o.expectOwned("the first one asks for what is its own", "shop", "a", 1, "a0")
		o.expectOwned("the second asks for that of all", "shop", "b", 2, "b1", "b2")
		for range 100 {
			o.expectOwned("that serves the others", "shop", "c", 2, "c3")
			o.expectOwned("one of them has nothing", "shop", "d", 2)
		}
		o.expectOwned("the first has been served by a list of its own", "shop", "a", 2, "a0")
		o.expectOwned("another namespace has other objects", "store", "a", 3)
		<-time.After(time.Minute) // the clock is synctest's
		o.add("shop", "a")
		o.expectOwned("what others have written meanwhile counts", "shop", "a", 4, "a0", "a4")
	})
}

func TestWhatThisProcessHasWrittenSinceAListIsListedAnew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOwnerships(t, "a", "b")
		o.expectOwned("", "shop", "x", 1)
		o.expectOwned("", "shop", "y", 2)
		<-time.After(time.Second)
		if _, err := o.Apply(t.Context(), o.add("shop", "a")); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Second)
		o.expectOwned("nothing of its was written", "shop", "b", 2, "b1")
		o.expectOwned("an object of its was written since", "shop", "a", 3, "a0", "a2")
		o.expectOwned("the new list serves all", "shop", "b", 3, "b1")
		o.expectOwned("and it again", "shop", "a", 3, "a0", "a2")
	})
}

// What one user may list says nothing of what another one may.
func TestAListServesNobodyWhoActsAsAnotherUser(t *testing.T) {
	t.Parallel()
	o := newOwnerships(t, "a")
	for i, user := range []string{"", "system:serviceaccount:shop:tenant"} {
		o.User = user
		o.expectOwned("it is the first of "+user, "shop", "b", 2*i+1)
		o.expectOwned("it is the second of "+user, "shop", "a", 2*i+2, "a0")
	}
}

func TestAListThatFailsFailsForThoseWhoHaveWaitedForIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOwnerships(t, "a")
		o.failure, o.takes = errors.New("the API server is down"), time.Second
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				if _, err := o.Owned(t.Context(), "shop", "owner", "a"); !errors.Is(err, o.failure) {
					t.Errorf("error %v", err)
				}
			})
		}
		all.Wait()
		if o.lists != 1 {
			t.Errorf("%d lists were requested", o.lists)
		}
		o.failure, o.lists = nil, 0
		o.expectOwned("the next one tries again", "shop", "a", 1, "a0")
	})
}

package e2e

import (
	"fmt"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/harness"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// sharedBody is a package that renders an object with a name from the spec.
const sharedBody = `#Spec: name: string
components: text: objects: map: {
	apiVersion: "v1"
	kind:       "ConfigMap"
	metadata: name: cr.spec.name
	data: owner:    cr.metadata.name
}
`

// pairs is how many pairs of resources race for one name each.
func pairs() int {
	if harness.Long() {
		return 1000
	}
	return 40
}

func TestE6OfTwoResourcesThatRenderOneNameAtOnceOneKeepsIt(t *testing.T) {
	t.Parallel()
	for name, race := range map[string]func(s *env) (first, second *testPackage){
		"of one process": func(s *env) (first, second *testPackage) {
			p := newTestPackage(s.T, "raceone", sharedBody)
			s.StartOperator(p.Dir)
			return p, p
		},
		"of two processes": func(s *env) (first, second *testPackage) {
			a, b := newTestPackage(s.T, "racea", sharedBody), newTestPackage(s.T, "raceb", sharedBody)
			s.StartOperator(a.Dir)
			s.StartOperator(b.Dir)
			return a, b
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newEnv(t)
			first, second := race(s)
			var things []*unstructured.Unstructured
			for i := range pairs() {
				spec := map[string]any{"name": fmt.Sprint("prize-", i)}
				things = append(things, first.Thing(s.Env, fmt.Sprint("a-", i), spec), second.Thing(s.Env, fmt.Sprint("b-", i), spec))
			}
			owners := s.watchOwners()
			s.createAtOnce(things)
			taken := 0
			for i := 0; i < len(things); i += 2 {
				s.expectOneWinner(things[i], things[i+1])
			}
			hands := owners()
			for i := range pairs() {
				had := hands[fmt.Sprint("prize-", i)]
				if len(had) == 0 || had[0] != had[len(had)-1] {
					t.Errorf("prize-%d went from one to another: %v", i, had)
				}
				taken += len(had) - 1
			}
			t.Logf("%d pairs, and %d times an object was taken and given back", pairs(), taken/2)
		})
	}
}

// watchOwners watches the ConfigMaps of the test. It returns a function that stops the watch and
// returns the owners that each has had, in order.
func (s *env) watchOwners() func() map[string][]string {
	s.T.Helper()
	return s.watchValues(s.Ref("ConfigMap", ""), func(u *unstructured.Unstructured) string { return u.GetAnnotations()["operetta.dev/owner"] })
}

// watchValues watches a value of each object of a kind. It returns a function that stops the watch and
// returns the values that each object has had, in order, by name.
func (s *env) watchValues(of *unstructured.Unstructured, value func(*unstructured.Unstructured) string) func() map[string][]string {
	s.T.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion(of.GetAPIVersion())
	list.SetKind(of.GetKind() + "List")
	events, err := harness.Suite.Admin.Watch(s.T.Context(), list, client.InNamespace(s.Namespace))
	if err != nil {
		s.T.Fatal(err)
	}
	out, done := map[string][]string{}, make(chan struct{})
	go func() {
		defer close(done)
		for e := range events.ResultChan() {
			u, ok := e.Object.(*unstructured.Unstructured)
			if !ok {
				continue
			}
			now := value(u)
			if had := out[u.GetName()]; now != "" && (len(had) == 0 || had[len(had)-1] != now) {
				out[u.GetName()] = append(had, now)
			}
		}
	}()
	return func() map[string][]string {
		events.Stop()
		<-done
		return out
	}
}

// createAtOnce creates objects concurrently, the two of a pair at the same time.
func (s *env) createAtOnce(objects []*unstructured.Unstructured) {
	s.T.Helper()
	for i := 0; i < len(objects); i += 2 {
		var pair sync.WaitGroup
		for _, u := range objects[i : i+2] {
			pair.Go(func() {
				if err := harness.Suite.Admin.Create(s.T.Context(), u); err != nil {
					s.T.Error(err)
				}
			})
		}
		pair.Wait()
	}
}

// expectOneWinner waits until exactly one of two resources is Ready, and the other one reports it as
// the owner of the object.
func (s *env) expectOneWinner(a, b *unstructured.Unstructured) {
	s.T.Helper()
	harness.Eventually(s.T, a.GetName()+" or "+b.GetName()+" to have the object", func() error {
		var winner string
		for _, u := range []*unstructured.Unstructured{a, b} {
			now, err := harness.GetOrNil(s.T.Context(), u)
			if err != nil || now == nil {
				return fmt.Errorf("%s: %w", u.GetName(), err)
			}
			switch c := harness.Condition(now, "Ready"); {
			case harness.Ready(now) == nil:
				winner += u.GetName()
			case c["reason"] != "OwnedByAnother":
				return fmt.Errorf("%s: %v", u.GetName(), c)
			}
		}
		name, _, _ := unstructured.NestedString(a.Object, "spec", "name")
		if owner := harness.Field(s.Get("ConfigMap", name), "data", "owner"); owner != winner {
			return fmt.Errorf("the object says %v, and Ready is %q", owner, winner)
		}
		return nil
	})
}

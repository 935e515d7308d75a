package rollout_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/cluster"
)

// rival returns a world in the same cluster whose resource has another name, and
// renders the same object.
func (w *world) rival(body string) *world {
	w.t.Helper()
	r := newResource(w.t, w.site, "rival")
	r.load(body)
	return r
}

const contested = `
components: web: {
	objects: settings: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "settings"}
	policy: settings: {adopt: true, delete: "DELETE"}
}
`

// TestE6TwoThatAdoptTheSameObjectDoNotTakeItInTurn: the one that has it keeps it, and
// the other one gets it when that one is gone and has left it behind.
func TestE6TwoThatAdoptTheSameObjectDoNotTakeItInTurn(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{"delete", "orphan"} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			body := strings.Replace(contested, "DELETE", policy, 1)
			holder := newWorld(t, body)
			other := holder.rival(body)
			expectStates(t, holder.mustRun(), "web: Verified Verified")
			holder.wrote()
			for range 3 {
				result := other.mustRun()
				expectStates(t, result, "web: Failed OwnedByAnother")
				if got := message(result, "web"); !strings.Contains(got, "Shop.example.com "+holder.owner.Namespace+"/shop, which keeps it") {
					t.Errorf("it says %q, want who keeps it", got)
				}
				expectStates(t, holder.mustRun(), "web: Verified Verified")
			}
			holder.expectWrites("nobody takes anything")

			holder.site.Refuse(undeletable) // the garbage collector would be faster
			holder.delete(holder.site.Find(shopKind, "shop"))
			result := other.mustRun()
			if policy == "delete" {
				expectStates(t, result, "web: Failed OwnedByAnother")
				return // its reference says that the garbage collector is about to take it
			}
			expectStates(t, result, "web: Verified Verified")
			if got := holder.object("ConfigMap", "settings").GetAnnotations()["operetta.dev/owner"]; got != "Shop.example.com "+holder.owner.Namespace+"/rival" {
				t.Errorf("it belongs to %s", got)
			}
		})
	}
}

// undeletable refuses every deletion of a ConfigMap.
func undeletable(before, after *unstructured.Unstructured) error {
	if after == nil && before.GetKind() == "ConfigMap" {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, before.GetName(), errors.New("it stays"))
	}
	return nil
}

// meddled is a cluster in which something happens right after an object was replaced.
type meddled struct {
	cluster.Cluster
	then func()
}

func (c meddled) Replace(ctx context.Context, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	out, err := c.Cluster.Replace(ctx, u)
	c.then()
	return out, err
}

// TestE6OwnerDoesNotTakeBackWhatIsBeingAdopted: adoption takes two writes where
// somebody else has written the reference to the owner, who sees what is there between
// them. Where the engine has, one does.
func TestE6OwnerDoesNotTakeBackWhatIsBeingAdopted(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		rewrite func(w *world)
		looks   int
	}{
		"by one write": {func(*world) {}, 0},
		"by two writes": {func(w *world) {
			refs := w.object("ConfigMap", "settings").GetOwnerReferences()
			for _, r := range [][]metav1.OwnerReference{nil, refs} {
				w.change("ConfigMap", "settings", func(u *unstructured.Unstructured) { u.SetOwnerReferences(r) })
			}
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body := strings.Replace(contested, "DELETE", "delete", 1)
			holder := newWorld(t, strings.Replace(body, "adopt: true", "adopt: false", 1))
			holder.mustRun()
			row.rewrite(holder)
			other := holder.rival(body)
			looks := 0
			other.cluster = meddled{other.cluster, func() {
				looks++
				expectStates(t, holder.mustRun(), "web: Failed OwnedByAnother")
			}}
			holder.wrote()
			expectStates(t, other.mustRun(), "web: Verified Verified")
			if got := len(holder.wrote()); looks != row.looks || got != 1+row.looks {
				t.Errorf("there were %d writes, and the owner has looked %d times between them; wanted %d looks", got, looks, row.looks)
			}
			expectStates(t, holder.mustRun(), "web: Failed OwnedByAnother")
		})
	}
}

// TestE6AdoptionTakesTheReferenceToTheControllerBefore: the API server refuses an
// object with two of them.
func TestE6AdoptionTakesTheReferenceToTheControllerBefore(t *testing.T) {
	t.Parallel()
	w := newWorld(t, strings.Replace(contested, "DELETE", "delete", 1))
	// Both are there, or the garbage collector would see to it.
	owner := func(name string, controller *bool) metav1.OwnerReference {
		u := w.site.Put("boss", object(kinds["ConfigMap"], w.owner.Namespace, name))
		return metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: name, UID: u.GetUID(), Controller: controller}
	}
	theirs := object(kinds["ConfigMap"], w.owner.Namespace, "settings")
	theirs.SetOwnerReferences([]metav1.OwnerReference{owner("boss", new(true)), owner("bystander", nil)})
	w.put("boss", theirs)
	expectStates(t, w.mustRun(), "web: Verified Verified")
	got := map[string]bool{}
	for _, ref := range w.object("ConfigMap", "settings").GetOwnerReferences() {
		got[ref.Name] = ref.Controller != nil && *ref.Controller
	}
	if diff := cmp.Diff(map[string]bool{"bystander": false, "shop": true}, got); diff != "" {
		t.Errorf("owners, and which is the controller (-want +got):\n%s", diff)
	}
}

// What is refused after the controller was removed would be an object of which nothing was applied, but
// which says that it is the resource's: a later prune would delete it.
func TestE6AdoptionThatIsRefusedLeavesTheObjectWithItsController(t *testing.T) {
	t.Parallel()
	body := strings.NewReplacer("DELETE", "delete", `name: "settings"}`, `name: "settings", data: mode: "new"}`).Replace(contested)
	w := newWorld(t, body+`components: other: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "other"}`)
	boss := w.site.Put("boss", object(kinds["ConfigMap"], w.owner.Namespace, "boss"))
	theirs := object(kinds["ConfigMap"], w.owner.Namespace, "settings")
	theirs.Object["data"] = map[string]any{"mode": "old"}
	theirs.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "boss", UID: boss.GetUID(), Controller: new(true)}})
	w.put("boss", theirs)
	before := w.object("ConfigMap", "settings")
	w.site.Refuse(func(live, after *unstructured.Unstructured) error {
		if live == nil || after == nil || after.GetName() != "settings" || cmp.Equal(live.Object["data"], after.Object["data"]) {
			return nil
		}
		return apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, after.GetName(), nil)
	})
	result, _ := w.run()
	if !slices.Contains(states(result), "web: Failed ObjectRejected") {
		t.Errorf("got %v, which says %q, want the refusal told", states(result), message(result, "web"))
	}
	if diff := cmp.Diff(before.Object["metadata"], w.object("ConfigMap", "settings").Object["metadata"]); diff != "" {
		t.Errorf("the refused adoption has changed the object (-want +got):\n%s", diff)
	}
	w.load(`components: other: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "other"}`)
	w.mustRun()
	if w.site.Find(kinds["ConfigMap"], "settings") == nil {
		t.Error("the object of somebody else was pruned")
	}
}

// secretive is a cluster that does not read custom resources.
type secretive struct {
	cluster.Cluster
	err error
}

func (c secretive) GetLive(ctx context.Context, ref cluster.Ref) (*unstructured.Unstructured, error) {
	if ref.Kind == shopKind.Kind {
		return nil, c.err
	}
	return c.Cluster.GetLive(ctx, ref)
}

// Whether the other one is gone may never be known. To try again would tell people less than who has it.
func TestE6AResourceThatCannotBeReadKeepsWhatItHas(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason string
		err    error
		want   string
	}{
		"forbidden": {
			"no right comes by itself", apierrors.NewForbidden(schema.GroupResource{Group: shopKind.Group, Resource: "shops"}, "shop", errors.New("no")),
			"web: Failed OwnedByAnother",
		},
		"not served": {
			"its kind may come back, and it with it", &cluster.KindNotServedError{Kind: shopKind},
			"web: Failed OwnedByAnother",
		},
		"not answered": {
			"the next answer may be that it is gone", errors.New("the API server is away"),
			"web: Retrying ApplyFailed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body := strings.Replace(contested, "DELETE", "orphan", 1)
			holder := newWorld(t, body)
			holder.mustRun()
			other := holder.rival(body)
			other.cluster = secretive{other.cluster, row.err}
			holder.wrote()
			result, err := other.run()
			expectStates(t, result, row.want)
			if retried := err != nil; retried != strings.Contains(row.want, "Retrying") {
				t.Errorf("%s: the error is %v", row.reason, err)
			}
			holder.expectWrites(row.reason)
		})
	}
}

// fleeting is a cluster in which something happens once an object was read live.
type fleeting struct {
	cluster.Cluster
	then func()
}

func (c *fleeting) GetLive(ctx context.Context, ref cluster.Ref) (*unstructured.Unstructured, error) {
	out, err := c.Cluster.GetLive(ctx, ref)
	if then := c.then; ref.Name == "settings" && then != nil {
		c.then = nil
		then()
	}
	return out, err
}

// overtaken is a cluster in which something happens just before an object is written.
type overtaken struct {
	cluster.Cluster
	before func()
}

func (c *overtaken) Apply(ctx context.Context, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if before := c.before; u.GetName() == "settings" && before != nil {
		c.before = nil
		before()
	}
	return c.Cluster.Apply(ctx, u)
}

// Only the object that was decided about is adopted. Another one of its name may be anybody's.
func TestE6AnObjectThatTakesThePlaceOfTheAdoptedOneKeepsItsController(t *testing.T) {
	t.Parallel()
	for name, again := range map[string]bool{"it is gone": false, "it was replaced": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, strings.Replace(contested, "DELETE", "delete", 1))
			boss := w.site.Put("boss", object(kinds["ConfigMap"], w.owner.Namespace, "boss"))
			theirs := object(kinds["ConfigMap"], w.owner.Namespace, "settings")
			theirs.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "boss", UID: boss.GetUID(), Controller: new(true)}})
			w.put("boss", theirs)
			w.cluster = &fleeting{w.site, func() {
				w.delete(w.object("ConfigMap", "settings"))
				if again {
					w.put("boss", theirs)
				}
			}}
			if result, err := w.run(); err == nil || result.Completion.Components[0].State != "Retrying" {
				t.Errorf("the error is %v, and %v", err, states(result))
			}
			w.expectWrites("what was decided about is not there")
			got := w.object("ConfigMap", "settings")
			if (got != nil) != again {
				t.Fatalf("there is %v", got)
			}
			if again && (len(got.GetOwnerReferences()) != 1 || got.GetOwnerReferences()[0].Name != "boss") {
				t.Errorf("its owners are %v", got.GetOwnerReferences())
			}
		})
	}
}

// Two find that an object is not there, and both create it.
func TestAnObjectThatAppearsBeforeItIsCreatedIsDecidedAboutAnew(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason string
		// appears creates the object.
		appears func(*world)
		want    string
	}{
		"by somebody else": {"it is not the resource's", func(w *world) {
			w.put("somebody", object(kinds["ConfigMap"], w.owner.Namespace, "settings"))
		}, "web: Failed OwnedByAnother"},
		"by another process of the operator": {"it is as it should be", func(w *world) {
			earlier := *w
			earlier.cluster = w.site
			earlier.mustRun()
			w.wrote()
		}, "web: Verified Verified"},
		"by an older version of the package": {"it is brought up to date", func(w *world) {
			earlier := *w
			earlier.cluster = w.site
			earlier.load(strings.Replace(settingsOf, "new", "old", 1))
			earlier.mustRun()
			w.wrote()
		}, "web: Verified Verified"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, settingsOf)
			w.cluster = &overtaken{w.site, func() { row.appears(w) }}
			expectStates(t, w.mustRun(), row.want)
			var want []string
			if strings.Contains(name, "older") {
				want = append(want, "update ConfigMap settings")
			}
			w.expectWrites(row.reason, want...)
			if got := w.object("ConfigMap", "settings").Object["data"]; strings.Contains(row.want, "Verified") && !cmp.Equal(got, map[string]any{"state": "new"}) {
				t.Errorf("%s: it has the data %v", row.reason, got)
			}
		})
	}
}

// settingsOf is a package with one object.
const settingsOf = `
components: web: objects: settings: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "settings", data: state: "new"}
`

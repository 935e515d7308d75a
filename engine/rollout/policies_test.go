package rollout_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"operetta.dev/engine/rollout"
	"operetta.dev/engine/status"
)

// withPolicy is one ConfigMap with a policy.
func withPolicy(policy string) string {
	return `
components: config: {
	objects: settings: {apiVersion: "v1", kind: "ConfigMap", metadata: name: cr.spec.name, data: size: "\(cr.spec.size)"}
	policy: settings: {` + policy + `}
}
components: other: objects: other: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "other"}
`
}

func (w *world) size() string {
	s, _, _ := unstructured.NestedString(w.object("ConfigMap", "shop").Object, "data", "size")
	return s
}

// immutable refuses to change data, and to create what is negative, as the API server
// does.
func immutable(before, after *unstructured.Unstructured) error {
	if after == nil {
		return nil
	}
	size := func(u *unstructured.Unstructured) string {
		s, _, _ := unstructured.NestedString(u.Object, "data", "size")
		return s
	}
	wrong := strings.HasPrefix(size(after), "-")
	if wrong || (before != nil && size(before) != size(after)) {
		return apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, after.GetName(), field.ErrorList{field.Invalid(field.NewPath("data"), "", "field is immutable")})
	}
	return nil
}

func TestCreateOnlyIsNeverChangedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withPolicy(`apply: "createOnly"`))
	w.mustRun()
	w.change("ConfigMap", "shop", func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(u.Object, "theirs", "data", "size")
	})
	w.spec["size"] = int64(2)
	w.mustRun()
	w.expectWrites("what is there is somebody else's to change")
	w.delete(w.object("ConfigMap", "shop"))
	w.mustRun()
	w.expectWrites("it should exist", "create ConfigMap shop")
	if w.size() != "2" {
		t.Errorf("it was created with %s", w.size())
	}
}

func TestAnImmutableObjectIsCreatedAnewWhenItsPolicySaysSo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withPolicy(`apply: "recreateOnImmutable"`))
	w.site.Refuse(immutable)
	w.mustRun()
	w.wrote()

	w.spec["size"] = int64(2)
	result := w.mustRun()
	w.expectWrites("first it goes", "delete ConfigMap shop")
	expectStates(t, result, "config: Waiting WaitingForDeletion", "other: Verified Verified")
	if result.RequeueAfter == 0 {
		t.Error("nothing makes the rollout come again")
	}
	if done := w.mustRun(); !done.Completion.Ready() {
		t.Errorf("states %v", states(done))
	}
	w.expectWrites("then it comes back", "create ConfigMap shop")

	w.spec["size"] = int64(-1)
	result, err := w.run()
	w.expectWrites("a wrong manifest must not cost the running object")
	expectStates(t, result, "config: Failed ObjectRejected", "other: Verified Verified")
	expectOffered(t, result, err)
}

func TestAnImmutableObjectIsOtherwiseReported(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withPolicy(""))
	w.site.Refuse(immutable)
	w.mustRun()
	w.wrote()
	w.spec["size"] = int64(2)
	result, err := w.run()
	w.expectWrites("nobody said that it may be deleted")
	expectStates(t, result, "config: Failed ObjectRejected", "other: Verified Verified")
	expectOffered(t, result, err)
	if got := message(result, "config"); !strings.Contains(got, "field is immutable") || !strings.Contains(got, "shop/body.cue:") {
		t.Errorf("config says %q, want what the API server says and the line that renders the object", got)
	}
}

// expectOffered expects that a refused object is offered again, but not with
// backoff: the same object will be refused for the same reason.
func expectOffered(t *testing.T, r rollout.Result, err error) {
	t.Helper()
	if err != nil {
		t.Errorf("the refusal is tried again with backoff: %v", err)
	}
	if r.RequeueAfter != 5*time.Minute {
		t.Errorf("the object is offered again after %s, want 5 minutes", r.RequeueAfter)
	}
}

func TestReplaceWritesTheWholeObject(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withPolicy(`apply: "replace"`))
	w.mustRun()
	w.wrote()
	w.mustRun()
	w.expectWrites("at rest it costs nothing, although an apply has created it")
	w.change("ConfigMap", "shop", func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(u.Object, "x", "data", "theirs")
		u.SetFinalizers([]string{"example.com/theirs"})
	})
	w.spec["size"] = int64(2)
	w.mustRun()
	w.expectWrites("the package wants something else", "update ConfigMap shop")
	if _, found, _ := unstructured.NestedString(w.object("ConfigMap", "shop").Object, "data", "theirs"); found {
		t.Error("what somebody else added is still there")
	}
	if len(w.object("ConfigMap", "shop").GetFinalizers()) != 1 {
		t.Error("E8: a finalizer of somebody else is gone, and with it what it was there for")
	}
	for range 3 {
		w.mustRun()
	}
	w.expectWrites("at rest it costs nothing")
	w.change("ConfigMap", "shop", func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(u.Object, "7", "data", "size")
	})
	w.mustRun()
	w.expectWrites("E7: drift is repaired", "update ConfigMap shop")
	if w.size() != "2" {
		t.Errorf("got %s", w.size())
	}
}

func TestAnOrphanStays(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withPolicy(`delete: "orphan"`))
	w.mustRun()
	if refs := w.object("ConfigMap", "shop").GetOwnerReferences(); len(refs) != 0 {
		t.Errorf("its owner's garbage collection would take it: %v", refs)
	}
	w.spec["name"] = "store"
	left := w.mustRun().Events
	if w.object("ConfigMap", "shop") == nil {
		t.Error("it is gone although it was to be left behind")
	}
	if !slices.ContainsFunc(left, func(e rollout.Event) bool { return e.Reason == "Orphaned" && strings.Contains(e.Message, "shop") }) {
		t.Errorf("the events %v do not say that it was left behind", left)
	}
	if w.inventory.Len() != 2 {
		t.Errorf("it is still in the inventory: %v", w.inventory)
	}
	result, err := w.teardown()
	if err != nil || result.Inventory.Len() != 0 {
		t.Errorf("left in the inventory: %v, error %v", result.Inventory, err)
	}
	if w.object("ConfigMap", "store") == nil || w.object("ConfigMap", "other") != nil {
		t.Error("teardown keeps the orphan and nothing else")
	}
}

func TestVerifyByPolicy(t *testing.T) {
	t.Parallel()
	for policy, want := range map[string]string{
		"ready":  "web: Applied NotReady",
		"exists": "web: Verified Verified",
		"none":   "web: Verified Verified",
	} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, `components: web: {
	objects: deployment: _deployment & {metadata: name: "web", spec: replicas: 3}
	policy: deployment: verify: "`+policy+`"
}`)
			expectStates(t, w.mustRun(), want)
		})
	}
}

func TestARefusedDeletionIsReportedAndTriedAgain(t *testing.T) {
	t.Parallel()
	denied := func(before, after *unstructured.Unstructured) error {
		if after == nil && before.GetKind() == "ConfigMap" && before.GetName() == "shop" {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "shop", errors.New("the webhook says no"))
		}
		return nil
	}
	t.Run("when it is pruned", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, withPolicy(""))
		w.mustRun()
		w.site.Refuse(denied)
		w.spec["name"] = "store"
		result, err := w.run()
		if err == nil || w.inventory.Len() != 3 {
			t.Errorf("G4: error %v, inventory %v", err, w.inventory)
		}
		if result.Completion.Ready() || !strings.Contains(result.Completion.Pruning, "the webhook says no") || !result.Completion.Refused {
			t.Errorf("G4: it does not say what blocks it: %+v", result.Completion)
		}
		w.site.Refuse(nil)
		if done := w.mustRun(); !done.Completion.Ready() || w.inventory.Len() != 2 {
			t.Errorf("G4: states %v, inventory %v", states(done), w.inventory)
		}
	})
	t.Run("when it is torn down", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, withPolicy(""))
		w.mustRun()
		w.site.Refuse(denied)
		result, err := w.teardown()
		if err == nil || result.Inventory.Len() != 1 {
			t.Fatalf("G4: error %v, inventory %v", err, result.Inventory)
		}
		if c := result.Completion.Components[0]; c.Reason != status.ReasonDeleteFailed || !strings.Contains(c.Message, "the webhook says no") {
			t.Errorf("G4: it says %+v", c)
		}
		w.site.Refuse(nil)
		result, err = w.teardown()
		if left := w.all("ConfigMap"); err != nil || result.Inventory.Len() != 0 || len(left) != 0 {
			t.Errorf("G4: error %v, left %v", err, left)
		}
	})
}

func TestObjectsOfAKindThatIsGoneAreGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `
components: a: objects: probe: {apiVersion: _own, kind: "Probe", metadata: name: "p"}
components: b: {dependsOn: a: {}, objects: o: `+configMap("b", "")+`}
`)
	kind := w.site.Kind("Probe")
	w.site.Serve(kind)
	w.mustRun()
	w.site.Withdraw(kind)
	result := w.mustRun()
	expectStates(t, result, "a: Waiting KindNotServed", "b: Waiting WaitingForDependency")
	if w.object("ConfigMap", "b") == nil {
		t.Error("nothing is deleted for that reason")
	}
	left, err := w.teardown()
	if err != nil || left.Inventory.Len() != 0 {
		t.Errorf("G2: error %v, left in the inventory %v", err, left.Inventory)
	}
}

func TestAnObjectOfAnotherResourceIsTakenOverWhenThePolicySaysSo(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ policy, want string }{
		"refused": {"", "config: Failed OwnedByAnother"},
		"adopted": {"adopt: true", "config: Verified Verified"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, withPolicy(row.policy))
			other := newResource(t, w.site, "another")
			other.load(withPolicy(""))
			other.mustRun()
			w.delete(w.object("ConfigMap", "other"))
			result := w.mustRun()
			expectStates(t, result, row.want, "other: Verified Verified")
			owner := w.object("ConfigMap", "shop").GetOwnerReferences()[0].Name
			if (owner == "shop") != (row.policy != "") {
				t.Errorf("E6: the owner is %s", owner)
			}
			if row.policy == "" && !strings.Contains(message(result, "config"), "Shop another") {
				t.Errorf("E6: it says %q, want the owner", message(result, "config"))
			}
		})
	}
}

// An object is deleted only if it is certain that it can be made anew.
func TestAnObjectIsNotDeletedToBeRecreatedForADenial(t *testing.T) {
	t.Parallel()
	settings := schema.GroupResource{Resource: "configmaps"}
	kind := schema.GroupKind{Kind: "ConfigMap"}
	// A ValidatingAdmissionPolicy denies with 422 unless it says otherwise, and names no field.
	policy := apierrors.NewForbidden(settings, "shop", errors.New("ValidatingAdmissionPolicy 'freeze' denied request: not before Monday"))
	policy.ErrStatus.Reason, policy.ErrStatus.Code = metav1.StatusReasonInvalid, 422
	policy.ErrStatus.Details.Causes = []metav1.StatusCause{{Message: "not before Monday"}}
	fixed := apierrors.NewInvalid(kind, "shop", field.ErrorList{field.Invalid(field.NewPath("data", "size"), "2", "field is immutable")})
	for name, row := range map[string]struct {
		reason         string
		update, create error
		says           []string
		not            string
		transient      bool
	}{
		"a policy denies the update":     {"what it protects must not go", policy, nil, []string{"not before Monday"}, "created anew", false},
		"a policy denies the creation":   {"it would be gone for good", fixed, policy, []string{"field is immutable", "it is not deleted, because it could not be created anew", "not before Monday"}, "recreateOnImmutable", false},
		"a quota is full":                {"it would be gone until somebody makes room", fixed, apierrors.NewForbidden(settings, "shop", errors.New("exceeded quota: few")), []string{"field is immutable", "exceeded quota: few"}, "recreateOnImmutable", false},
		"the manifest is wrong":          {"the old object is better than none", fixed, fixed, []string{"field is immutable"}, "created anew", false},
		"the API server does not answer": {"it is asked again", fixed, apierrors.NewInternalError(errors.New("etcd is away")), []string{"etcd is away"}, "it is not deleted", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, withPolicy(`apply: "recreateOnImmutable"`))
			w.mustRun()
			was := w.object("ConfigMap", "shop").GetUID()
			w.site.Refuse(func(before, after *unstructured.Unstructured) error {
				switch {
				case after == nil || after.GetName() != "shop" || after.GetKind() != "ConfigMap":
					return nil
				case before == nil:
					return row.create
				}
				return row.update
			})
			w.spec["size"] = int64(2)
			result, _ := w.run()
			want := "config: Failed ObjectRejected"
			if row.transient {
				want = "config: Retrying ApplyFailed"
			}
			expectStates(t, result, want, "other: Verified Verified")
			text := message(result, "config")
			for _, says := range row.says {
				if !strings.Contains(text, says) {
					t.Errorf("%s: it says %q, which lacks %q", row.reason, text, says)
				}
			}
			if strings.Contains(text, row.not) {
				t.Errorf("%s: it says %q", row.reason, text)
			}
			if is := w.object("ConfigMap", "shop"); is == nil || is.GetUID() != was {
				t.Errorf("%s: the object was deleted", row.reason)
			}
		})
	}
}

// Deleting the object would not help where its content is not what is refused.
func TestARemedyIsSaidOnlyOfWhatIsImmutable(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason string
		refuse error
		want   bool
	}{
		"an immutable field": {"a new object may have another value", apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, "shop", field.ErrorList{field.Invalid(field.NewPath("data"), "", "field is immutable")}), true},
		"a policy":           {"the policy is to be changed, or the object", apierrors.NewBadRequest("the policy says no"), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, withPolicy(""))
			w.mustRun()
			w.site.Refuse(func(before, after *unstructured.Unstructured) error {
				if before != nil && after != nil && after.GetName() == "shop" && after.GetKind() == "ConfigMap" {
					return row.refuse
				}
				return nil
			})
			w.spec["size"] = int64(2)
			result := w.mustRun()
			expectStates(t, result, "config: Failed ObjectRejected", "other: Verified Verified")
			if got := message(result, "config"); strings.Contains(got, "recreateOnImmutable") != row.want {
				t.Errorf("%s: it says %q", row.reason, got)
			}
		})
	}
}

// Only what is there is left as it is, and that begins once the object is the resource's.
func TestWhatIsOnlyCreatedIsAppliedWhenItIsAdopted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withPolicy(`apply: "createOnly", adopt: true`))
	theirs := object(kinds["ConfigMap"], w.owner.Namespace, "shop")
	theirs.Object["data"] = map[string]any{"size": "9"}
	w.put("somebody", theirs)
	expectStates(t, w.mustRun(), "config: Verified Verified", "other: Verified Verified")
	if got := w.size(); got != "1" {
		t.Errorf("its size is %s", got)
	}
	w.change("ConfigMap", "shop", func(u *unstructured.Unstructured) { u.Object["data"] = map[string]any{"size": "8"} })
	w.mustRun()
	w.expectWrites("from now on it is left as it is")
}

// An update that the API server takes needs no deletion, and so nobody asks whether a new object would be taken.
func TestAnUpdateThatIsTakenDoesNotRestOnWhetherANewObjectWouldBe(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `
components: config: {
	objects: {for name in ["one", "two"] {(name): {apiVersion: "v1", kind: "ConfigMap", metadata: "name": name, data: size: "\(cr.spec.size)"}}}
	policy: {for name in ["one", "two"] {(name): apply: "recreateOnImmutable"}}
}
`)
	w.mustRun()
	w.wrote()
	w.site.Refuse(func(before, after *unstructured.Unstructured) error {
		if before == nil && after.GetKind() == "ConfigMap" {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, after.GetName(), errors.New("exceeded quota"))
		}
		return nil
	})
	w.spec["size"] = int64(2)
	expectStates(t, w.mustRun(), "config: Verified Verified")
	w.expectWrites("both are there, and count for the quota already", "update ConfigMap one", "update ConfigMap two")
}

// What an earlier evaluation of the same rollout has rendered is not prepared again, unless its policy is another.
func TestAPolicyThatAnAnswerChangesCountsInTheSameRollout(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `
_there: *live.a.o.metadata.name | "nothing"
components: a: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "a"}
components: b: {
	dependsOn: a: {}
	objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "b"}
	policy: o: delete: [if _there == "a" {"orphan"}, "delete"][0]
}
`)
	expectStates(t, w.mustRun(), "a: Verified Verified", "b: Verified Verified")
	if refs := w.object("ConfigMap", "b").GetOwnerReferences(); len(refs) > 0 {
		t.Errorf("it is to be left behind, and its owners are %v", refs)
	}
	if w.mustTeardown(); w.object("ConfigMap", "b") == nil || w.object("ConfigMap", "a") != nil {
		t.Error("teardown keeps the orphan and nothing else")
	}
}

// A cluster that is upgraded stops serving old versions of its kinds, and keeps the objects.
func TestAnObjectWhoseVersionIsNoLongerServedIsDeleted(t *testing.T) {
	t.Parallel()
	budget := schema.GroupVersionKind{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"}
	w := newWorld(t, `components: web: objects: b: {apiVersion: "policy/v1", kind: "PodDisruptionBudget", metadata: name: "b", spec: {maxUnavailable: 1, selector: matchLabels: app: "shop"}}`)
	w.mustRun()
	if w.site.Find(budget, "b") == nil {
		t.Fatal("there is nothing to delete")
	}
	w.inventory[0].Objects[0].APIVersion = "policy/v1beta1"
	w.mustTeardown()
	if w.site.Find(budget, "b") != nil {
		t.Error("the object is left for ever")
	}
	if len(w.inventory) > 0 {
		t.Errorf("the inventory has %v", w.inventory)
	}
}

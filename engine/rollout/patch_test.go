package rollout_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/patch"
	"operetta.dev/engine/rollout"
)

// patchable has a component that waits for another, one that can be switched off, and
// an object that is written once.
const patchable = `
components: {
	config: {
		objects: settings: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "settings", data: size: "\(cr.spec.size)"}
		verify: wanted: cr.spec.size > 0
	}
	web: {
		dependsOn: config: {}
		objects: page: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "page", data: text: "plain"}
	}
	extra: {
		when: cr.spec.on
		objects: note: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "note", data: text: "plain"}
	}
	once: {
		objects: seed: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "seed", data: text: "plain"}
		policy: seed: apply: "createOnly"
	}
}
hooks: afterDeploy: tell: objects: tale: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "tale", data: text: "plain"}
`

// patchOf is a patch of the field data.text of some objects.
func patchOf(name, text string, addresses ...string) patch.Patch {
	p := patch.Patch{Namespace: "default", Name: name, Generation: 1}
	for _, a := range addresses {
		p.Changes = append(p.Changes, patch.Change{Address: a, StrategicMerge: map[string]any{"data": map[string]any{"text": text}}})
	}
	return p
}

// outcomes returns "patch address: Applied" or its reason, for each change.
func outcomes(r rollout.Result) []string {
	var out []string
	for _, p := range r.Patches {
		for _, a := range p.Applied {
			out = append(out, fmt.Sprintf("%s %s: Applied", p.Patch.Name, a.Address))
		}
		for _, m := range p.Unmatched {
			out = append(out, fmt.Sprintf("%s %s: %s", p.Patch.Name, m.Address, m.Reason))
		}
	}
	return out
}

func expectOutcomes(t *testing.T, reason string, r rollout.Result, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, outcomes(r)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", reason, diff)
	}
}

// text returns the field that patches change.
func (w *world) text(name string) string {
	w.t.Helper()
	u := w.object("ConfigMap", name)
	if u == nil {
		return ""
	}
	s, _, _ := unstructured.NestedString(u.Object, "data", "text")
	return s
}

func TestAPatchIsOneWriteThereAndOneBack(t *testing.T) {
	w := newWorld(t, patchable)
	w.mustRun()
	w.wrote()

	w.patches = []patch.Patch{patchOf("p", "patched", "web.page")}
	r := w.mustRun()
	w.expectWrites("the patch", "update ConfigMap page")
	expectOutcomes(t, "it is there", r, "p web.page: Applied")
	if diff := cmp.Diff([]string{"p"}, r.Completion.Patches); diff != "" {
		t.Errorf("the resource does not say that it is patched:\n%s", diff)
	}
	w.mustRun()
	w.expectWrites("nothing at rest")

	w.change("ConfigMap", "page", func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(u.Object, "theirs", "data", "text")
	})
	w.mustRun()
	w.expectWrites("drift is repaired", "update ConfigMap page")
	if got := w.text("page"); got != "patched" {
		t.Errorf("drift was repaired towards %q, not towards the patched rendering", got)
	}

	w.patches = nil
	r = w.mustRun()
	w.expectWrites("the patch is gone", "update ConfigMap page")
	if got := w.text("page"); got != "plain" || len(r.Completion.Patches) > 0 {
		t.Errorf("without the patch the text is %q, and %v is in effect", got, r.Completion.Patches)
	}
}

func TestAPatchIsAppliedFromTheFirstWriteOn(t *testing.T) {
	w := newWorld(t, patchable)
	w.patches = []patch.Patch{patchOf("p", "patched", "web.page", "once.seed")}
	r := w.mustRun()
	w.expectWrites("each object is written once",
		"create ConfigMap settings", "create ConfigMap page", "create ConfigMap note", "create ConfigMap seed", "create ConfigMap tale-"+w.suffix("tale"))
	expectOutcomes(t, "also one that is written only once", r, "p web.page: Applied", "p once.seed: Applied")
}

// suffix returns the end of the name of a hook's object.
func (w *world) suffix(name string) string {
	for _, u := range w.all("ConfigMap") {
		if rest, ok := strings.CutPrefix(u.GetName(), name+"-"); ok {
			return rest
		}
	}
	return "none"
}

func TestAPatchSaysWhyAnObjectIsNotAsItWants(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		spec    map[string]any
		address string
		want    string
		message string
	}{
		"waiting": {
			"a closed gate holds patches as it holds every change",
			map[string]any{"size": int64(0)}, "web.page", "Pending", "waiting for config",
		},
		"excluded": {
			"what should not exist cannot be changed",
			map[string]any{"on": false}, "extra.note", "NoSuchObject", "when is false",
		},
		"excluded with another": {
			"it goes with what it depends on",
			map[string]any{"on": false}, "tail.note", "NoSuchObject", "component tail should not exist: it depends on extra",
		},
		"createOnly": {
			"an object that is there is left as it is",
			nil, "once.seed", "Conflict", "createOnly",
		},
		"unmatched": {
			"there is no such component",
			nil, "wbe.page", "NoSuchObject", "config, web, extra, once",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, patchable+`components: tail: {dependsOn: extra: {}, objects: note: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "tail"}}`)
			w.mustRun()
			if tc.spec != nil {
				w.spec = tc.spec
			}
			w.patches = []patch.Patch{patchOf("p", "patched", tc.address), patchOf("q", "patched", "config.settings")}
			r := w.mustRun()
			expectOutcomes(t, tc.reason, r, "p "+tc.address+": "+tc.want, "q config.settings: Applied")
			if got := r.Patches[0].Unmatched[0].Message; !strings.Contains(got, tc.message) {
				t.Errorf("%s: message %q does not say %q", tc.reason, got, tc.message)
			}
		})
	}
}

func TestAPatchThatTheAPIServerRefusesIsTold(t *testing.T) {
	w := newWorld(t, patchable)
	w.mustRun()
	w.site.Refuse(func(_, after *unstructured.Unstructured) error {
		if s, _, _ := unstructured.NestedString(after.Object, "data", "text"); s == "refused" {
			return apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, after.GetName(), nil)
		}
		return nil
	})
	w.patches = []patch.Patch{patchOf("p", "refused", "web.page"), patchOf("q", "patched", "extra.note")}
	r, err := w.run()
	if err != nil || r.RequeueAfter == 0 {
		t.Errorf("got error %v and requeue after %s, want the object to be offered again later", err, r.RequeueAfter)
	}
	expectOutcomes(t, "and the other patch is applied", r, "p web.page: Rejected", "q extra.note: Applied")
	w.patches = w.patches[1:]
	r = w.mustRun()
	expectStates(t, r, "config: Verified Verified", "web: Verified Verified", "extra: Verified Verified", "once: Verified Verified",
		"hooks.afterDeploy.tell: Verified Verified")
}

var ingressClass = schema.GroupVersionKind{Group: "networking.k8s.io", Version: "v1", Kind: "IngressClass"}

// unsure is a cluster that cannot say so many times whether an IngressClass is in a namespace.
type unsure struct {
	cluster.Cluster

	times int
	err   error
}

// Scope implements cluster.Cluster.
func (u *unsure) Scope(ctx context.Context, kind schema.GroupVersionKind) (cluster.Scope, error) {
	if kind == ingressClass && u.times > 0 {
		u.times--
		return "", u.err
	}
	return u.Cluster.Scope(ctx, kind)
}

func TestAPatchReachesNoFurtherWhereTheScopeOfAKindIsNotKnown(t *testing.T) {
	for name, why := range map[string]error{
		"the API server does not answer": errors.New("it does not answer"),
		"the kind is not served yet":     &cluster.KindNotServedError{Kind: ingressClass},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, patchable+`
reach: "IngressClass.networking.k8s.io": {}
components: wide: objects: class: {apiVersion: "networking.k8s.io/v1", kind: "IngressClass", metadata: {name: cr.metadata.namespace + "-wide", labels: text: "plain"}, spec: controller: "example.com/none"}
`)
			w.patches = []patch.Patch{patchOf("p", "patched", "web.page"), {Namespace: "default", Name: "q", Generation: 1, Changes: []patch.Change{{
				Address: "wide.class", StrategicMerge: map[string]any{"metadata": map[string]any{"labels": map[string]any{"text": "patched"}}},
			}}}}
			for times := range 8 {
				w.cluster = &unsure{w.site, times, why}
				r, err := w.run()
				if err != nil && !errors.Is(err, why) {
					t.Fatalf("unknown %d times: the error is %v", times, err)
				}
				if err == nil && slices.Contains(outcomes(r), "q wide.class: Applied") {
					t.Errorf("unknown %d times: the Patch reached an object outside of its namespace", times)
				}
				u, _ := w.site.GetLive(t.Context(), cluster.Ref{GroupVersionKind: ingressClass, Name: w.owner.Namespace + "-wide"})
				if u != nil && u.GetLabels()["text"] != "plain" {
					t.Errorf("unknown %d times: the Patch changed an object outside of its namespace", times)
				}
				if got := w.text("page"); got == "plain" {
					t.Errorf("unknown %d times: the Patch of another object was taken back", times)
				}
			}
		})
	}
}

func TestAPatchedHookRunsAgainAsItDoesForEveryChange(t *testing.T) {
	w := newWorld(t, patchable)
	w.mustRun()
	before := w.suffix("tale")
	w.patches = []patch.Patch{patchOf("p", "patched", "hooks.afterDeploy.tell.tale")}
	r := w.mustRun()
	expectOutcomes(t, "its address begins with its phase", r, "p hooks.afterDeploy.tell.tale: Applied")
	if w.suffix("tale") == before {
		t.Error("the patched hook did not run")
	}
	r = w.mustRun()
	expectOutcomes(t, "and it says so from then on", r, "p hooks.afterDeploy.tell.tale: Applied")
}

func TestAPatchIsKnownBeforeTheFirstWrite(t *testing.T) {
	w := newWorld(t, patchable)
	w.mustRun()
	var previews [][]string
	w.protect = func(_ context.Context, p rollout.WriteAhead) error {
		previews = append(previews, p.Preview.Patches)
		return nil
	}
	w.patches = []patch.Patch{patchOf("p", "patched", "web.page")}
	w.mustRun()
	w.load(patchable + `
components: more: objects: more: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "more"}`)
	w.mustRun()
	if diff := cmp.Diff([][]string{{"p"}}, previews); diff != "" {
		t.Errorf("while more is written, the status forgets what is in effect (-want +got):\n%s", diff)
	}
}

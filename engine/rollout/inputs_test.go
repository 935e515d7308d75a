package rollout_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/program"
)

// restlessCluster is a cluster on which somebody changes each input before it is read.
type restlessCluster struct {
	cluster.Cluster
	reads map[string]int
}

// ListCached implements cluster.Cluster.
func (c *restlessCluster) ListCached(_ context.Context, which cluster.Selection) ([]*unstructured.Unstructured, error) {
	c.reads[which.Name]++
	u := object(kinds["ConfigMap"], which.Namespace, which.Name)
	u.SetResourceVersion(fmt.Sprint(c.reads[which.Name]))
	u.Object["data"] = map[string]any{"text": fmt.Sprint(c.reads[which.Name])}
	return []*unstructured.Unstructured{u}, nil
}

// Each read would find another version, and that would be evaluated.
func TestAnInputThatChangesAllTheTimeIsReadOnceInARollout(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `
inputs: first: {apiVersion: "v1", kind: "ConfigMap", name: "elsewhere"}
inputs: second: {apiVersion: "v1", kind: "ConfigMap", name: live.a.map.data.next}
components: a: objects: map: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "a", data: {text: inputs.first.object.data.text, next: "next"}}
components: b: objects: map: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "b", data: text: inputs.second.object.data.text}
components: c: requires: odd: inputs.second.object.data.text != live.b.map.data.text
components: c: objects: map: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "c"}
`)
	restless := &restlessCluster{w.site, map[string]int{}}
	w.cluster = restless
	r := w.mustRun()
	w.expectWrites("each component once", "create ConfigMap a", "create ConfigMap b")
	expectStates(t, r, "a: Verified Verified", "b: Verified Verified", "c: Waiting WaitingForRequirement")
	for name, n := range restless.reads {
		if n != 1 {
			t.Errorf("%s was read %d times", name, n)
		}
	}
}

// askedInVain is a cluster that errors when objects of a kind that is not served are listed.
type askedInVain struct{ cluster.Cluster }

// ListCached implements cluster.Cluster.
func (c askedInVain) ListCached(ctx context.Context, which cluster.Selection) ([]*unstructured.Unstructured, error) {
	if _, err := c.Scope(ctx, which.Kind); err != nil {
		return nil, err
	}
	return c.Cluster.ListCached(ctx, which)
}

// Everything else would be held by an error.
func TestAnInputOfAKindThatIsNotServedIsNotRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `
inputs: probe: {apiVersion: _own, kind: "Probe", name: "p"}
components: a: objects: map: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "a", data: text: inputs.probe.object.spec.text}
components: b: objects: map: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "b"}
`)
	w.cluster = askedInVain{w.site}
	r := w.mustRun()
	w.expectWrites("b needs no input", "create ConfigMap b")
	if text := message(r, "a"); !strings.Contains(text, "does not serve") {
		t.Errorf("a says %q, want what it waits for", text)
	}
	kind := w.site.Kind("Probe")
	w.site.Serve(kind)
	u := object(kind, w.owner.Namespace, "p")
	u.Object["spec"] = map[string]any{"text": "x"}
	w.put("somebody", u)
	w.mustRun()
	w.expectWrites("it is served now", "create ConfigMap a")
}

// Nothing is left to be looked at again then.
func TestAnInputOfAKindThatIsServedInTheMeantimeIsNotAwaited(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason string
		times  int
		waits  bool
	}{
		"after the first component": {"its definition was part of that, say", 1, false},
		"not in this rollout":       {"no event says that it is served", 9, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, `
inputs: class: {apiVersion: "networking.k8s.io/v1", kind: "IngressClass", name: cr.metadata.namespace + "-class"}
components: first: objects: map: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "first"}
components: second: objects: map: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "second", data: controller: inputs.class.object.spec.controller}
`)
			class := object(ingressClass, "", w.owner.Namespace+"-class")
			class.Object["spec"] = map[string]any{"controller": "example.com/none"}
			w.put("somebody", class)
			w.cluster = &unsure{w.site, row.times, &cluster.KindNotServedError{Kind: ingressClass}}
			r := w.mustRun()
			if r.Completion.Ready() == row.waits || (r.RequeueAfter > 0) != row.waits {
				t.Errorf("%s: it comes again after %s, with %v", row.reason, r.RequeueAfter, states(r))
			}
		})
	}
}

// unreadableInput is a cluster on which the input of one name cannot be read.
type unreadableInput struct {
	cluster.Cluster
	name string
}

// ListCached implements cluster.Cluster.
func (c unreadableInput) ListCached(ctx context.Context, which cluster.Selection) ([]*unstructured.Unstructured, error) {
	if which.Name == c.name {
		return nil, &cluster.KindUnreadableError{Kind: which.Kind, Cause: context.DeadlineExceeded}
	}
	return c.Cluster.ListCached(ctx, which)
}

// The watches of what nobody says would last, and those of what a failed rollout waits for must.
func TestARolloutSaysInTheEndWhichInputsItRefersTo(t *testing.T) {
	t.Parallel()
	const reading = `
inputs: first: {apiVersion: "v1", kind: "ConfigMap", name: cr.spec.name}
components: a: objects: map: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "a", data: next: "next"}
`
	for name, row := range map[string]struct {
		reason, body string
		want         []string
	}{
		"that succeeds":                         {"it reads one", reading, []string{"succeeded: shop"}},
		"one of whose inputs is out of reach":   {"it has asked for the first", reading + `inputs: second: {apiVersion: "v1", kind: "ConfigMap", name: "second", namespace: "elsewhere"}`, []string{"failed: shop"}},
		"one of whose inputs cannot be read":    {"it waits for the second", reading + `inputs: second: {apiVersion: "v1", kind: "ConfigMap", name: "unreadable"}`, []string{"failed: shop unreadable"}},
		"that reads another one after a write":  {"the last evaluation counts", reading + `inputs: second: {apiVersion: "v1", kind: "ConfigMap", name: live.a.map.data.next}`, []string{"succeeded: shop next"}},
		"that cannot read one after its writes": {"what it has followed from counts, too", reading + "inputs: second: {apiVersion: \"v1\", kind: \"ConfigMap\", name: *live.a.map.metadata.labels.none | \"second\"}\ninputs: third: {apiVersion: \"v1\", kind: \"ConfigMap\", name: \"un\" + live.a.map.data.readable}\ncomponents: a: objects: map: data: readable: \"readable\"\n", []string{"succeeded: shop second", "failed: shop second unreadable"}},
		"of an invalid resource":                {"nothing is read", reading + `cr: spec: size: <0`, []string{"failed:"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, row.body)
			w.cluster = unreadableInput{w.site, "unreadable"}
			var told []string
			w.refers = func(_ types.NamespacedName, inputs []program.Input, failed bool) {
				one := "succeeded:"
				if failed {
					one = "failed:"
				}
				for _, i := range inputs {
					one += " " + i.Object
				}
				told = append(told, one)
			}
			_, _ = w.run()
			if diff := cmp.Diff(row.want, told); diff != "" {
				t.Errorf("%s: told (-want +got):\n%s", row.reason, diff)
			}
		})
	}
}

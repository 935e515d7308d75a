package rollout_test

import (
	"strings"
	"testing"

	"operetta.dev/engine/status"
)

// TestWhatOnlyAPersonCanBringStalls: to wait for it silently would be to wait forever.
func TestWhatOnlyAPersonCanBringStalls(t *testing.T) {
	t.Parallel()
	const optional = "cr: spec: {title?: string}\n"
	cases := map[string]struct {
		body string
		want string
		says string
	}{
		"an object that needs a field of the spec": {
			optional + `components: web: objects: cm: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "web", data: t: cr.spec.title}`,
			"web: Failed FieldNotSet",
			"waiting for objects.cm.data.t: cr.spec.title is optional, and not set (shop/body.cue:3); set spec.title, or let the package do without",
		},
		"a requirement": {
			optional + `components: web: requires: t: cr.spec.title != ""`,
			"web: Failed FieldNotSet",
			"set spec.title, or let the package do without",
		},
		"a condition of health": {
			optional + `components: web: {objects: cm: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "web"}, verify: t: cr.spec.title != ""}`,
			"web: Failed FieldNotSet",
			"set spec.title, or let the package do without",
		},
		"a switch": {
			optional + `components: web: when: cr.spec.title != ""`,
			"web: Failed FieldNotSet",
			"set spec.title, or let the package do without",
		},
		"a misspelled field of an own object": {
			`components: {
	a: objects: cm: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "a", data: typo: "x"}
	web: objects: cm: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "web", data: t: components.a.objects.cm.data.tpyo}
}`, "web: Failed InvalidObject", "components.a.objects.cm.data.tpyo does not exist (did you mean typo?)",
		},
		"a misspelled field of an own live object": {
			`components: {
	a: objects: cm: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "a", data: typo: "x"}
	web: objects: cm: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "web", data: t: live.a.cm.data.tpyo}
}`, "web: Failed InvalidObject", "live.a.cm.data.tpyo does not exist (did you mean typo?)",
		},
		"a misspelled field in a condition of health": {
			`components: {
	a: objects: cm: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "a", data: typo: "x"}
	web: verify: t: live.a.cm.data.tpyo == "x"
}`, "web: Failed PredicateBroken", "live.a.cm.data.tpyo does not exist (did you mean typo?)",
		},
		"a field that the cluster may fill": {
			`components: web: {objects: cm: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "web"}, verify: t: live.web.cm.status.x == "y"}`,
			"web: Applied NotReady", "live.web.cm.status is not there yet",
		},
		"a field that is needed only while a live object says so": {
			optional + `components: web: {objects: cm: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "web"}, requires: t: (*live.web.cm.data.x | "") == ""}
components: next: objects: cm: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "next", data: {if live.web.cm.metadata.uid != "" {t: cr.spec.title}}}`,
			"next: Waiting WaitingForValue", "cr.spec.title is optional, and not set",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			result := newWorld(t, c.body).mustRun()
			last := result.Completion.Components[len(result.Completion.Components)-1]
			if got := last.Name + ": " + string(last.State) + " " + string(last.Reason); got != c.want {
				t.Errorf("is %q, want %q", got, c.want)
			}
			if !strings.Contains(last.Message, c.says) {
				t.Errorf("says %q, want %q", last.Message, c.says)
			}
			stalled := last.State == status.Failed
			if strings.Contains(c.want, "Failed") != stalled {
				t.Errorf("stalled is %v", stalled)
			}
		})
	}
}

// TestWhatWasAppliedIsRepairedWhileAFieldIsNotSet: the component changes nothing, and
// keeps what it has as it was.
func TestWhatWasAppliedIsRepairedWhileAFieldIsNotSet(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `cr: spec: {title?: string}
components: web: {requires: t: cr.spec.title != "", objects: cm: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "web", data: k: "v"}}`)
	w.spec = map[string]any{"title": "x"}
	expectStates(t, w.mustRun(), "web: Verified Verified")
	w.spec = map[string]any{}
	u := w.object("ConfigMap", "web")
	u.Object["data"] = map[string]any{"k": "drift"}
	w.put("somebody", u)
	expectStates(t, w.mustRun(), "web: Failed FieldNotSet")
	w.expectWrites("drift", "update ConfigMap web")
}

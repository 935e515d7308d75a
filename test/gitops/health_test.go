package gitops

import (
	"os"
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/google/go-cmp/cmp"
	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/install"
	own "operetta.dev/engine/status"
	"sigs.k8s.io/yaml"
)

const (
	scriptFile = "../../engine/install/health.lua"
	patchFile  = "../../config/argocd/argocd-cm.yaml"
)

// now is the time of all statuses of these tests.
var now = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// built returns the status that the engine writes for the second generation of a resource.
func built(c own.Completion, before map[string]any) map[string]any {
	return own.Build(own.Input{Completion: c, Before: before, Generation: 2, Now: now, Package: "shop", Digest: "sha256:1", Version: "v1"})
}

// one returns the completion of a rollout with one component.
func one(state own.State, reason own.Reason, message string) own.Completion {
	return own.Completion{Change: own.Unchanged, Components: []own.Component{{Name: "web", State: state, Reason: reason, Message: message}}}
}

func TestArgoCDAndFluxSeeHowFarAResourceIs(t *testing.T) {
	t.Parallel()
	ready := built(one(own.Verified, own.ReasonVerified, ""), nil)
	deleting := one(own.Deleting, own.ReasonDeleting, "")
	deleting.Deleting = true
	held := one(own.Failed, own.ReasonHookFailed, "the hook has failed")
	held.Deleting = true
	rows := map[string]struct {
		reason     string
		status     map[string]any
		generation int64
		deleted    bool
		argo       string
		flux       status.Status
	}{
		"not seen yet":           {"the operator has not written a status", nil, 1, false, "Progressing", status.CurrentStatus},
		"ready":                  {"everything is verified", ready, 2, false, "Healthy", status.CurrentStatus},
		"waiting":                {"a component is not healthy yet", built(one(own.Applied, own.ReasonNotReady, "web is not ready"), nil), 2, false, "Progressing", status.InProgressStatus},
		"retrying":               {"the engine tries again by itself", built(one(own.Retrying, own.ReasonApplyFailed, "refused"), nil), 2, false, "Progressing", status.InProgressStatus},
		"failed":                 {"a person has to act", built(one(own.Failed, own.ReasonInvalidObject, "no image"), nil), 2, false, "Degraded", status.FailedStatus},
		"a new generation":       {"what is Ready is the spec before", ready, 3, false, "Progressing", status.InProgressStatus},
		"failed, then edited":    {"what has failed is the spec before", built(one(own.Failed, own.ReasonInvalidObject, "no image"), nil), 3, false, "Progressing", status.InProgressStatus},
		"paused":                 {"nothing happens until a person removes the annotation", own.Paused(ready, 2, now), 2, false, "Suspended", status.CurrentStatus},
		"paused, then edited":    {"nobody acts upon the new spec, and what is Ready is the one before", own.Paused(ready, 3, now), 3, false, "Suspended", status.InProgressStatus},
		"asked about":            {"whether another process serves it is unknown, and it goes on as it was", own.AskWhetherServed(ready, 2, now), 2, false, "Healthy", status.CurrentStatus},
		"never seen, and broken": {"its package was wrong from the start", own.PackageBroken(nil, 1, now, "shop.cue:3: x"), 1, false, "Degraded", status.FailedStatus},
		"out of reach":           {"the cluster is unreachable, and everything is unknown", built(own.Completion{Fault: own.Component{State: own.Retrying, Reason: own.ReasonApplyFailed, Message: "no answer"}, Change: own.Unchanged}, ready), 2, false, "Progressing", status.InProgressStatus},
		"broken package":         {"nothing is reconciled", own.PackageBroken(ready, 2, now, "shop.cue:3: x"), 2, false, "Degraded", status.FailedStatus},
		"deleted":                {"its objects are on their way out", built(deleting, ready), 2, true, "Progressing", status.TerminatingStatus},
		"a deletion that stalls": {"a person has to act", built(held, ready), 2, true, "Degraded", status.TerminatingStatus},
		"forged conditions":      {"they are no list of conditions", map[string]any{"observedGeneration": int64(2), "conditions": []any{map[string]any{"type": "Ready"}}}, 2, false, "Progressing", status.CurrentStatus},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "shop.example/v1", "kind": "Shop",
				"metadata": map[string]any{"name": "corner", "namespace": "town", "generation": row.generation},
			}}
			if row.status != nil {
				u.Object["status"] = row.status
			}
			if row.deleted {
				_ = unstructured.SetNestedField(u.Object, "2026-11-23T12:00:00Z", "metadata", "deletionTimestamp")
			}
			health, message := healthOf(t, u.Object)
			if health != row.argo || message == "" {
				t.Errorf("%s: Argo CD sees %s (%q), want %s", row.reason, health, message, row.argo)
			}
			result, err := status.Compute(u)
			if err != nil {
				t.Fatal(err)
			}
			if result.Status != row.flux {
				t.Errorf("%s: kstatus sees %s (%q), want %s", row.reason, result.Status, result.Message, row.flux)
			}
		})
	}
}

// healthOf runs the script as Argo CD does: the resource is the global obj, and the result is a table.
func healthOf(t *testing.T, resource map[string]any) (health, message string) {
	t.Helper()
	l := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer l.Close()
	l.Push(l.NewFunction(lua.OpenBase)) // it has ipairs; Argo CD opens little more
	l.Call(0, 0)
	l.SetGlobal("obj", luaValue(l, resource))
	if err := l.DoFile(scriptFile); err != nil {
		t.Fatal(err)
	}
	result, ok := l.Get(-1).(*lua.LTable)
	if !ok {
		t.Fatalf("the script returned %v", l.Get(-1))
	}
	return lua.LVAsString(result.RawGetString("status")), lua.LVAsString(result.RawGetString("message"))
}

// luaValue returns a JSON value in Lua.
func luaValue(l *lua.LState, v any) lua.LValue {
	switch v := v.(type) {
	case string:
		return lua.LString(v)
	case int64:
		return lua.LNumber(v)
	case bool:
		return lua.LBool(v)
	case []any:
		out := l.NewTable()
		for _, e := range v {
			out.Append(luaValue(l, e))
		}
		return out
	case map[string]any:
		out := l.NewTable()
		for k, e := range v {
			out.RawSetString(k, luaValue(l, e))
		}
		return out
	}
	return lua.LNil
}

func TestThePatchOfArgoCDsConfigMapHasTheScriptAlone(t *testing.T) {
	t.Parallel()
	script, err := os.ReadFile(scriptFile)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(patchFile)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := yaml.UnmarshalStrict(text, &got); err != nil {
		t.Fatal(err)
	}
	// Nothing but the entry: what is no object is never deleted with Argo CD's configuration in it.
	want := map[string]any{"data": map[string]any{"resource.customizations.health.example.com_WebApp": string(script)}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s is not a patch with the script (-want +got):\n%s", patchFile, diff)
	}
}

func TestInstallPrintsTheHealthCheckOfEachKind(t *testing.T) {
	t.Parallel()
	script, err := os.ReadFile(scriptFile)
	if err != nil {
		t.Fatal(err)
	}
	got := install.ArgoCD([]schema.GroupKind{{Group: "example.com", Kind: "WebApp"}, {Group: "shop.example.com", Kind: "Shop"}})
	want := map[string]any{"data": map[string]any{
		"resource.customizations.health.example.com_WebApp":    string(script),
		"resource.customizations.health.shop.example.com_Shop": string(script),
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

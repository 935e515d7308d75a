package e2e

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/controlplane"
	"operetta.dev/test/harness"
)

// memo is a note under another name: the one before is deleted.
var memo = strings.Replace(note("b"), `name: "note-`, `name: "memo-`, 1)

// limitedNote returns the Package with a body and limits.
func limitedNote(p *harness.PackageObject, body string, limits map[string]any) *unstructured.Unstructured {
	return p.Object(map[string]any{"source": map[string]any{"inline": map[string]any{p.Name + ".cue": p.Text(body)}}, "limits": limits})
}

func TestARevisionBeyondItsLimitDeletesNothingUntilTheLimitIsRaised(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	o := s.StartPackageOperator()
	p := s.NewPackageObject("objlimits")
	two := map[string]any{"maxDelete": int64(2)}
	p.Apply(limitedNote(p, note("a"), two))
	first, _ := harness.Field(p.Expect("Ready", "True", "Served"), "status", "digest").(string)
	for i := range 3 {
		s.ExpectResourceReady(s.Create(p.Thing(s.Env, fmt.Sprint("shop", i), map[string]any{})))
	}
	from := harness.MarkAudit(t)
	p.Apply(limitedNote(p, memo, two))
	held := p.Expect("Ready", "False", "LimitExceeded", "it would delete 3 objects", "spec.limits.maxDelete is 2", first+" is served")
	if err := harness.HasCondition(held, "Stalled", "True", "LimitExceeded"); err != nil {
		t.Error(err)
	}
	if n := harness.Field(held, "status", "plan", "deleted"); n != int64(3) {
		t.Errorf("the plan is %v", harness.Field(held, "status", "plan"))
	}
	listed := fmt.Sprint(harness.Field(held, "status", "plan", "objects"))
	for i := range 3 {
		if want := fmt.Sprintf("object:ConfigMap %s/note-shop%d", s.Namespace, i); !strings.Contains(listed, want) {
			t.Errorf("the list does not name %s: %s", want, listed)
		}
	}

	// A process that begins anew serves the version before, and plans again.
	o.Stop()
	s.StartPackageOperator()
	s.Patch(p.Thing(s.Env, "shop0", nil), harness.Spec(map[string]any{"text": "c"}))
	s.ExpectData("note-shop0", "text", "c")
	s.ExpectData("note-shop0", "version", "a")
	p.Expect("Ready", "False", "LimitExceeded", "it would delete 3 objects", first+" is served")
	s.WaitUntilIdle()
	writes := s.OperatorRequests(from).Writes().Filter(func(e controlplane.AuditEvent) bool {
		return strings.HasPrefix(e.Verb, "delete") || strings.HasPrefix(e.Name, "memo-")
	})
	if len(writes) > 0 {
		t.Errorf("the revision that is held back has done something: %s", writes)
	}

	p.Apply(limitedNote(p, memo, map[string]any{"maxDelete": int64(3)}))
	u := p.Expect("Ready", "True", "Served")
	if harness.Field(u, "status", "plan") != nil || len(harness.Condition(u, "Stalled")) > 0 {
		t.Errorf("it still says that it is held back: %v", u.Object["status"])
	}
	for i := range 3 {
		s.ExpectData(fmt.Sprint("memo-shop", i), "version", "b")
		s.ExpectGone(harness.Object("v1", "ConfigMap", s.Namespace, fmt.Sprint("note-shop", i)))
	}
}

func TestARevisionWithinItsLimitIsTakenOver(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	s.StartPackageOperator()
	p := s.NewPackageObject("objwithin")
	none := map[string]any{"maxDelete": int64(0), "maxRecreate": int64(0)}
	p.Apply(limitedNote(p, note("a"), none))
	p.Expect("Ready", "True", "Served")
	s.ExpectResourceReady(s.Create(p.Thing(s.Env, "shop", map[string]any{})))
	p.Apply(limitedNote(p, memo, none))
	p.Expect("Ready", "False", "LimitExceeded", "it would delete 1 object")
	p.Apply(limitedNote(p, note("b"), none))
	p.Expect("Ready", "True", "Served")
	s.ExpectData("note-shop", "version", "b")
}

// countingNote is a note whose #Spec has a number, with more data.
func countingNote(p *harness.PackageObject, version, data string) map[string]any {
	head := strings.Replace(p.Text(""), `import "operetta.dev/schemas/operator"`, "import (\n\t\"list\"\n\t\"operetta.dev/schemas/operator\"\n)", 1)
	body := strings.NewReplacer(`#Spec: text: string | *"none"`, `#Spec: {text: string | *"none", n?: int}`, `version: "`+version+`"`, `version: "`+version+`", `+data).Replace(note(version))
	return map[string]any{"source": map[string]any{"inline": map[string]any{p.Name + ".cue": head + body}}}
}

func TestARevisionThatNobodyCanEvaluateForAResourceIsHeldBack(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	o := s.StartPackageOperator()
	p := s.NewPackageObject("objendless")
	limited := func(version, data string, most int64) *unstructured.Unstructured {
		spec := countingNote(p, version, data)
		spec["limits"] = map[string]any{"maxDelete": most}
		return p.Object(spec)
	}
	once := `if cr.spec.n != _|_ {n: "\(len(list.Range(0, 1, 1)))"}`
	endless := `if cr.spec.n != _|_ for a in list.Range(0, cr.spec.n, 1) for b in list.Range(0, cr.spec.n, 1) for c in list.Range(0, cr.spec.n, 1) {"k\(a)-\(b)-\(c)": "v"}`
	p.Apply(limited("a", once, 0))
	p.Expect("Ready", "True", "Served")
	for name, spec := range map[string]map[string]any{"quick": {}, "slow": {"n": int64(3000)}} {
		s.ExpectResourceReady(s.Create(p.Thing(s.Env, name, spec)))
	}
	p.Apply(limited("b", endless, 0))
	held := p.Expect("Ready", "False", "LimitExceeded", "1 more of which that cannot be decided")
	if listed := fmt.Sprint(harness.Field(held, "status", "plan", "objects")); !strings.Contains(listed, "note-slow") || strings.Contains(listed, "note-quick") {
		t.Errorf("the list is %s", listed)
	}
	// The version that is served goes on, for the namespace of the plan as well.
	s.Patch(p.Thing(s.Env, "slow", nil), harness.Spec(map[string]any{"text": "c"}))
	s.ExpectData("note-slow", "text", "c")
	s.ExpectData("note-slow", "version", "a")
	if strings.Contains(o.Log.From(0), "beyond its limit") {
		t.Error("a version that is not served was evaluated as if it were")
	}
	p.Apply(limited("b", endless, 1))
	p.Expect("Ready", "True", "Served")
	s.ExpectData("note-quick", "version", "b")
}

package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/controlplane"
	"operetta.dev/test/harness"
)

// triedNote is a note that is ready unless its text says something else, and reports a field of its own. VERSION stands for its version.
const triedNote = `
#Spec: text: string | *"none"
components: note: {
	objects: note: {
		apiVersion: "v1"
		kind:       "ConfigMap"
		metadata: name: "note-\(cr.metadata.name)"
		data: {text: cr.spec.text, version: "VERSION"}
	}
	verify: done:   cr.spec.text != "wait"
	failed: broken: cr.spec.text == "fail"
}
status: shown: cr.spec.text
`

// canaryNote returns the Package with a body and a canary.
func canaryNote(p *harness.PackageObject, body string, canary map[string]any) *unstructured.Unstructured {
	return p.Object(map[string]any{"source": map[string]any{"inline": map[string]any{p.Name + ".cue": p.Text(body)}}, "canary": canary})
}

// expectTried waits until one resource of the Package has another version than the others, and returns its name.
func expectTried(s *env, p *harness.PackageObject) string {
	s.T.Helper()
	name := ""
	harness.Eventually(s.T, "one resource to have the content of the canary", func() error {
		u, err := harness.GetOrNil(s.T.Context(), p.Ref())
		if err != nil || u == nil {
			return errors.Join(err, errors.New("there is no Package"))
		}
		var names []string
		for _, thing := range s.List(p.Name+".example.com/v1", "Thing") {
			if harness.Field(&thing, "status", "package", "digest") == harness.Field(u, "status", "canary", "digest") {
				names = append(names, thing.GetName())
			}
		}
		if len(names) != 1 {
			return fmt.Errorf("they are %v: %v", names, harness.Field(u, "status", "canary"))
		}
		name = names[0]
		return nil
	})
	return name
}

// notesWritten returns the names of the ConfigMaps that the operator has written since a mark, each as often as it was.
func notesWritten(s *env, from controlplane.AuditMark) []string {
	var out []string
	for e := range slices.Values(s.OperatorRequests(from).Writes().OfResource("configmaps")) {
		out = append(out, e.Name)
	}
	slices.Sort(out)
	return out
}

func TestABadCanaryTouchesItsShareOnlyAndGoesBackAlsoAfterARestart(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	o := s.StartPackageOperator()
	p := s.NewPackageObject("objcanary")
	canary := map[string]any{"share": "20%", "readyFor": "2s", "deadline": "1h"}
	p.Apply(canaryNote(p, note("a"), canary))
	p.Expect("Ready", "True", "Served")
	const resources = 5
	for i := range resources {
		s.ExpectResourceReady(s.Create(p.Thing(s.Env, fmt.Sprint("shop", i), map[string]any{"text": "wait"})))
	}
	s.WaitUntilIdle()

	from := harness.MarkAudit(t)
	p.Apply(canaryNote(p, strings.ReplaceAll(triedNote, "VERSION", "b"), canary))
	p.Expect("Ready", "False", "CanaryProgressing")
	tried := expectTried(s, p)
	s.ExpectData("note-"+tried, "version", "b")
	u := s.ExpectObject(p.Ref(), "to count the canary", func(u *unstructured.Unstructured) error {
		if n, ready := harness.Field(u, "status", "canary", "resources"), harness.Field(u, "status", "canary", "ready"); n != int64(1) || ready != int64(0) {
			return fmt.Errorf("%v of %v are ready", ready, n)
		}
		return nil
	})
	if list := fmt.Sprint(harness.Field(u, "status", "canary", "notReady")); !strings.Contains(list, s.Namespace+"/"+tried) {
		t.Errorf("the canary lists %s, not %s", list, tried)
	}

	if text, _ := s.operettaAs(s.AdminKubeconfig(), "status"); !strings.Contains(text, "package/"+p.Name+"  canary of ") || !strings.Contains(text, "Progressing: 0 of 1 resources are ready") {
		t.Errorf("operetta status does not show the canary:\n%s", text)
	}

	// A process that begins anew goes on where the other one was: nothing goes back, and nobody else gets it.
	o.Stop()
	o = s.StartPackageOperator()
	o.ExpectLog("accepted last is served", p.Name)
	s.Patch(p.Thing(s.Env, tried, nil), harness.Spec(map[string]any{"text": "wait"}))
	p.Expect("Ready", "False", "CanaryProgressing")
	s.WaitUntilIdle()
	if got := notesWritten(s, from); len(got) != 1 || got[0] != "note-"+tried {
		t.Errorf("the canary has written %v, and %s is the one that was chosen", got, tried)
	}

	s.Patch(p.Thing(s.Env, tried, nil), harness.Spec(map[string]any{"text": "fail"}))
	held := p.Expect("Ready", "False", "CanaryRolledBack", "1 resource has failed", s.Namespace+"/"+tried)
	if err := harness.HasCondition(held, "Stalled", "True", "CanaryRolledBack"); err != nil {
		t.Error(err)
	}
	s.ExpectData("note-"+tried, "version", "a")
	s.ExpectResourceReady(p.Thing(s.Env, tried, nil))
	for range 2 { // also after a restart
		s.WaitUntilIdle()
		if got := slices.Compact(notesWritten(s, from)); len(got) != 1 {
			t.Errorf("the canary has written %v", got)
		}
		if back := harness.Field(p.Expect("Ready", "False", "CanaryRolledBack"), "status", "canary", "phase"); back != "RolledBack" {
			t.Errorf("the phase is %v", back)
		}
		o.Stop()
		o = s.StartPackageOperator()
		o.ExpectLog("accepted last is served", p.Name)
	}

	// A content that is good goes to the others, once its resource has been ready for its time.
	p.Apply(canaryNote(p, note("c"), canary))
	for i := range resources {
		s.ExpectData(fmt.Sprint("note-shop", i), "version", "c")
	}
	good := p.Expect("Ready", "True", "Served")
	if phase := harness.Field(good, "status", "canary", "phase"); phase != "Promoted" {
		t.Errorf("the phase is %v", phase)
	}
	harness.Eventually(t, "an event about the promotion", func() error {
		for _, e := range harness.ListEverywhere(t, "events.k8s.io/v1", "Event") { // a Package has no namespace
			note, _ := e.Object["note"].(string)
			if harness.Field(&e, "regarding", "name") == p.Name && e.Object["reason"] == "CanaryPromoted" && strings.HasSuffix(note, "after 1 of them") {
				return nil
			}
		}
		return errors.New("there is none")
	})
}

// createBeyondCanary creates a resource whose UID is beyond the bound of the canary of a Package, and returns its name. One of six is
// within that of a canary of one of five.
func createBeyondCanary(s *env, p *harness.PackageObject) string {
	s.T.Helper()
	bound, _ := harness.Field(s.ExpectObject(p.Ref(), "to exist", harness.Exists), "status", "canary", "upTo").(string)
	for i := range 20 {
		u := s.Create(p.Thing(s.Env, fmt.Sprint("late", i), map[string]any{}))
		if sum := sha256.Sum256([]byte(u.GetUID())); hex.EncodeToString(sum[:8]) > bound {
			s.ExpectResourceReady(u)
			return u.GetName()
		}
		s.Delete(u)
		s.ExpectGone(u)
	}
	s.T.Fatalf("no resource is beyond %q", bound)
	return ""
}

func TestWhoComesGoesOrForgesAStatusInACanaryLetsItThroughToNobody(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	o := s.StartPackageOperator()
	p := s.NewPackageObject("objcanaryforged")
	canary := map[string]any{"share": "20%", "readyFor": "1h", "deadline": "2h"}
	p.Apply(canaryNote(p, note("a"), canary))
	p.Expect("Ready", "True", "Served")
	for i := range 5 {
		s.ExpectResourceReady(s.Create(p.Thing(s.Env, fmt.Sprint("shop", i), map[string]any{})))
	}
	p.Apply(canaryNote(p, strings.ReplaceAll(triedNote, "VERSION", "b"), canary))
	p.Expect("Ready", "False", "CanaryReady")
	first := expectTried(s, p)
	shown := s.ExpectObject(p.Thing(s.Env, first, nil), "to report the field of the new version", func(u *unstructured.Unstructured) error {
		if got := harness.Field(u, "status", "shown"); got != "none" {
			return fmt.Errorf("it reports %v", got)
		}
		return nil
	})

	// A resource that comes, and is beyond the bound of the canary, has the version before; and when the one that was chosen goes, another one is.
	s.ExpectData("note-"+createBeyondCanary(s, p), "version", "a")
	s.Delete(shown)
	s.ExpectGone(p.Thing(s.Env, first, nil))
	second := expectTried(s, p)

	// Somebody writes that the canary has all resources, and has been ready for years. A process that begins anew reads that.
	o.Stop()
	forged := map[string]any{"phase": "Ready", "since": "2001-01-01T00:00:00Z", "readySince": "2001-01-01T00:00:00Z", "upTo": "ffffffffffffffff", "resources": int64(5), "ready": int64(5)}
	forge := func() {
		u := s.ExpectObject(p.Ref(), "to exist", harness.Exists)
		for field, value := range forged {
			if err := unstructured.SetNestedField(u.Object, value, "status", "canary", field); err != nil {
				t.Fatal(err)
			}
		}
		if err := harness.Suite.Admin.Status().Update(t.Context(), u); err != nil {
			t.Fatal(err)
		}
	}
	forge()
	from := harness.MarkAudit(t)
	s.StartPackageOperator()
	s.ExpectObject(p.Ref(), "to say what is so", func(u *unstructured.Unstructured) error {
		if c, _ := harness.Field(u, "status", "canary").(map[string]any); c["resources"] != int64(1) || c["upTo"] == "ffffffffffffffff" {
			return fmt.Errorf("it says %v", c)
		}
		return nil
	})
	forge() // also while it runs
	s.Patch(p.Thing(s.Env, second, nil), harness.Spec(map[string]any{"text": "some"}))
	s.ExpectData("note-"+second, "text", "some")
	s.WaitUntilIdle()
	if got := slices.Compact(notesWritten(s, from)); !slices.Equal(got, []string{"note-" + second}) {
		t.Errorf("the forged status has %v written, and the canary is %s", got, second)
	}
	if again := expectTried(s, p); again != second {
		t.Errorf("the canary was %s, and is %s", second, again)
	}
}

func TestACanaryByLabelsGoesBackAtItsDeadline(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	s.StartPackageOperator()
	p := s.NewPackageObject("objlabels")
	canary := map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"ring": "first"}}, "readyFor": "1s", "deadline": "5s"}
	p.Apply(canaryNote(p, note("a"), canary))
	p.Expect("Ready", "True", "Served")
	for _, name := range []string{"first", "second"} {
		thing := p.Thing(s.Env, name, map[string]any{"text": "wait"})
		thing.SetLabels(map[string]string{"ring": name})
		s.ExpectResourceReady(s.Create(thing))
	}
	s.WaitUntilIdle()
	from := harness.MarkAudit(t)
	p.Apply(canaryNote(p, strings.ReplaceAll(triedNote, "VERSION", "b"), canary))
	p.Expect("Ready", "False", "CanaryRolledBack", "0 of 1 resources are ready after 5s", s.Namespace+"/first")
	s.ExpectData("note-first", "version", "a")
	if got := slices.Compact(notesWritten(s, from)); len(got) != 1 || got[0] != "note-first" {
		t.Errorf("the canary has written %v", got)
	}
}

func TestAContentThatCannotReadWhatUsersMayWriteIsNoCanary(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	s.StartPackageOperator()
	p := s.NewPackageObject("objnarrow")
	canary := map[string]any{"share": "50%", "readyFor": "1s"}
	p.Apply(canaryNote(p, note("a"), canary))
	p.Expect("Ready", "True", "Served")
	s.ExpectResourceReady(s.Create(p.Thing(s.Env, "shop", map[string]any{"text": "long enough"})))
	narrow := strings.Replace(note("b"), `#Spec: text: string | *"none"`, `#Spec: text: *"none" | "some"`, 1)
	p.Apply(canaryNote(p, narrow, canary))
	p.Expect("Ready", "False", "CanaryIncompatible", "spec.text is narrower", "remove spec.canary")
	s.ExpectData("note-shop", "version", "a")
}

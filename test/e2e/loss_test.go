package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/harness"
)

// lossBody is the body of a package with a field that a later version of it does not have, and with a bound.
const lossBody = `
#Spec: {
	old?: string
	n: int & <=9 | *1
}
components: note: objects: note: {
	apiVersion: "v1"
	kind:       "ConfigMap"
	metadata: name: "note-\(cr.metadata.name)"
	data: {n: "\(cr.spec.n)", version: "a"}
}
`

var (
	withoutOld = strings.Replace(strings.Replace(lossBody, "	old?: string\n", "", 1), `version: "a"`, `version: "b"`, 1)
	boundedBy4 = strings.Replace(strings.Replace(lossBody, "<=9", "<=4", 1), `version: "a"`, `version: "c"`, 1)
	acceptance = regexp.MustCompile(`kubectl annotate (crd \S+ --overwrite operetta\.dev/accepted-loss=\w+)`)
)

// accept gives the command that a message names.
func (s *env) accept(message string) {
	s.T.Helper()
	found := acceptance.FindStringSubmatch(message)
	if found == nil {
		s.T.Fatalf("no command is in %q", message)
	}
	s.Kubectl(append([]string{"annotate"}, strings.Fields(found[1])...)...)
}

// keepsOld returns nil if a resource has the field still.
func keepsOld(u *unstructured.Unstructured) error {
	if got := harness.Field(u, "spec", "old"); got != "precious" {
		return fmt.Errorf("spec.old is %v", got)
	}
	return nil
}

func TestAFolderThatWouldTakeAFieldFromAResourceIsHeldBackUntilSomebodyAcceptsThat(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	p := newTestPackage(t, "losesfield", lossBody)
	write := func(body string) {
		harness.WriteFile(t, filepath.Join(p.Dir, p.Name+".cue"), strings.ReplaceAll(harness.TestPackageHead+body, "NAME", p.Name))
	}
	state := filepath.Join(t.TempDir(), "state")
	o := s.StartOperator(p.Dir, "--state-dir", state)
	s.ExpectResourceReady(s.Create(p.Thing(s.Env, "a", map[string]any{})))
	cr := s.Create(p.Thing(s.Env, "b", map[string]any{"old": "precious", "n": int64(2)}))
	s.ExpectResourceReady(cr)

	write(withoutOld)
	o.ExpectLog("the last good version keeps running", "Thing "+s.Namespace+"/b: spec.old: the field would be dropped (version v1)")
	s.ExpectEvent("b", "CRDTooNarrow", "spec.old: the field would be dropped")
	s.ExpectObject(cr, "to say that an earlier version serves it", func(u *unstructured.Unstructured) error {
		if err := harness.HasCondition(u, "PackageBroken", "True", "LastGoodVersion"); err != nil {
			return err
		}
		return keepsOld(u)
	})
	s.Patch(cr, harness.Spec(map[string]any{"n": 3}))
	s.ExpectData("note-b", "n", "3")
	s.ExpectData("note-b", "version", "a")

	// A restart does not take it either.
	o.Stop()
	o = s.StartOperator(p.Dir, "--state-dir", state)
	said := o.ExpectLog("the last good version keeps running", "/b: spec.old")
	s.Patch(cr, harness.Spec(map[string]any{"n": 4}))
	s.ExpectData("note-b", "n", "4")
	s.ExpectObject(cr, "to have its field", keepsOld)

	s.accept(said)
	s.ExpectData("note-b", "version", "b")
	s.ExpectObject(cr, "to have lost the field and to be Ready", func(u *unstructured.Unstructured) error {
		if got := harness.Field(u, "spec", "old"); got != nil {
			return fmt.Errorf("spec.old is %v", got)
		}
		return isNotReportedBroken(u)
	})

	// What was accepted once is not accepted for ever.
	write(boundedBy4)
	s.ExpectData("note-b", "version", "c")
	s.Patch(cr, harness.Spec(map[string]any{"n": 3, "old": "precious"}))
	position := o.Log.Len()
	write(strings.Replace(withoutOld, `version: "b"`, `version: "d"`, 1) + "#Spec: {n: <=4}\n")
	o.ExpectLogAfter(position, "the last good version keeps running", "/b: spec.old")
}

func TestAPackageWhoseDefinitionRefusesAResourceIsHeldBackUntilThatIsChanged(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	o := s.StartPackageOperator()
	p := s.NewPackageObject("losesbound")
	p.Apply(p.InlineBody(lossBody))
	p.Expect("Ready", "True", "Served")
	cr := s.Create(p.Thing(s.Env, "b", map[string]any{"n": int64(5), "old": "precious"}))
	s.ExpectResourceReady(cr)

	p.Apply(p.InlineBody(boundedBy4))
	held := []string{"Thing " + s.Namespace + "/b: spec.n: the value would be refused", "less than or equal to 4"}
	p.Expect("CRDReady", "False", "CRDTooNarrow", held...)
	u := p.Expect("Ready", "False", "CRDTooNarrow", held...)
	if err := harness.HasCondition(u, "Stalled", "True", "CRDTooNarrow"); err != nil {
		t.Error(err)
	}
	s.ExpectObject(cr, "to say where it is written why", func(u *unstructured.Unstructured) error {
		if text, _ := harness.Condition(u, "PackageBroken")["message"].(string); !strings.Contains(text, "CRDTooNarrow; the status of Package losesbound says why") {
			return fmt.Errorf("the message is %q", text)
		}
		return harness.Ready(u)
	})
	s.ExpectEvent("b", "CRDTooNarrow", "spec.n: the value would be refused")
	s.ExpectData("note-b", "version", "a")

	o.Stop()
	s.StartPackageOperator().ExpectLog("accepted last is served", "losesbound")
	p.Expect("Ready", "False", "CRDTooNarrow", held...)
	s.Patch(cr, harness.Spec(map[string]any{"n": 4}))
	s.ExpectData("note-b", "n", "4") // of the content before
	p.Expect("Ready", "True", "Served")
	s.ExpectData("note-b", "version", "c")

	// Whoever may write the definition accepts the loss.
	p.Apply(p.InlineBody(strings.Replace(withoutOld, "<=9", "<=4", 1)))
	u = p.Expect("Ready", "False", "CRDTooNarrow", "/b: spec.old: the field would be dropped")
	s.ExpectObject(cr, "to have its field", keepsOld)
	message, _ := harness.Condition(u, "Ready")["message"].(string)
	s.accept(message)
	p.Expect("Ready", "True", "Served")
	s.ExpectData("note-b", "version", "b")
}

func TestAVersionThatIsConvertedIsHeldBackByWhatItsWebhookReturns(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	const group = "losesversion.example.com"
	dir := copyOfWebApp(t, group, asItIs)
	w := startConverting(t, s, dir, "webapps."+group)
	w.Await(webApp(s, group, "v1", "early", map[string]any{"image": "registry.example.com/nginx:1.25"}))
	file := filepath.Join(dir, "v1alpha1.cue")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	next := strings.Replace(string(text), "strings.MaxRunes(512)", "strings.MaxRunes(20)", 1)
	if next == string(text) {
		t.Fatal("nothing is narrower")
	}
	harness.WriteFile(t, file, next)
	s.Operator.ExpectLog("the last good version keeps running", "/early: spec.image: the value would be refused", "(version v1alpha1)")
}

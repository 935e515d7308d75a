package e2e

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/harness"
)

// droppingBody is the body of a package with a field that a later version of it does not have.
const droppingBody = `
#Spec: {
	old?: string
	count: int & <=9 | *1
}
components: note: objects: note: {
	apiVersion: "v1"
	kind:       "ConfigMap"
	metadata: name: "note-\(cr.metadata.name)"
	data: {count: "\(cr.spec.count)", version: "a"}
}
`

var (
	withoutOld = strings.Replace(strings.Replace(droppingBody, "	old?: string\n", "", 1), `version: "a"`, `version: "b"`, 1)
	acceptance = regexp.MustCompile(`kubectl annotate (crd \S+ --overwrite operetta\.dev/accepted-drops=\w+)`)
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

// keepsOld returns nil if a resource still has the field.
func keepsOld(u *unstructured.Unstructured) error {
	if got := harness.Field(u, "spec", "old"); got != "precious" {
		return fmt.Errorf("spec.old is %v", got)
	}
	return nil
}

func TestAFolderThatWouldTakeAFieldFromAResourceIsHeldBackUntilSomebodyAcceptsThat(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	p := newTestPackage(t, "dropsfield", droppingBody)
	o := s.StartOperator(p.Dir)
	s.ExpectResourceReady(s.Create(p.Thing(s.Env, "a", map[string]any{})))
	cr := s.Create(p.Thing(s.Env, "b", map[string]any{"old": "precious", "count": int64(2)}))
	s.ExpectResourceReady(cr)

	harness.WriteFile(t, filepath.Join(p.Dir, p.Name+".cue"), strings.ReplaceAll(harness.TestPackageHead+withoutOld, "NAME", p.Name))
	said := o.ExpectLog("the last good version keeps running", "Thing "+s.Namespace+"/b has spec.old, which would be dropped")
	s.ExpectObject(cr, "to say that an earlier version serves it", func(u *unstructured.Unstructured) error {
		if err := harness.HasCondition(u, "PackageBroken", "True", "LastGoodVersion"); err != nil {
			return err
		}
		return keepsOld(u)
	})
	s.Patch(cr, harness.Spec(map[string]any{"count": 3}))
	s.ExpectData("note-b", "count", "3")
	s.ExpectData("note-b", "version", "a")

	s.accept(said)
	s.ExpectData("note-b", "version", "b") // nobody has touched the folder
	s.ExpectObject(cr, "to have lost the field and to be Ready", func(u *unstructured.Unstructured) error {
		if got := harness.Field(u, "spec", "old"); got != nil {
			return fmt.Errorf("spec.old is %v", got)
		}
		return isNotReportedBroken(u)
	})
}

func TestAPackageThatWouldTakeAFieldFromAResourceIsHeldBackUntilThatHasItNoMore(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	o := s.StartPackageOperator()
	p := s.NewPackageObject("dropsinline")
	p.Apply(p.InlineBody(droppingBody))
	p.Expect("Ready", "True", "Served")
	cr := s.Create(p.Thing(s.Env, "b", map[string]any{"count": int64(5), "old": "precious"}))
	s.ExpectResourceReady(cr)

	p.Apply(p.InlineBody(withoutOld))
	held := "Thing " + s.Namespace + "/b has spec.old, which would be dropped"
	p.Expect("CRDReady", "False", "CRDRefused", held)
	p.Expect("Ready", "False", "CRDRefused", held)
	s.ExpectObject(cr, "to have its field", keepsOld)
	s.ExpectData("note-b", "version", "a")

	// A restart does not take it either: what was accepted before goes on.
	o.Stop()
	s.StartPackageOperator().ExpectLog("accepted last is served", "dropsinline")
	p.Expect("Ready", "False", "CRDRefused", held)
	s.Patch(cr, harness.Spec(map[string]any{"count": 4}))
	s.ExpectData("note-b", "count", "4")
	s.ExpectData("note-b", "version", "a")

	s.Patch(cr, harness.Spec(map[string]any{"old": nil}))
	p.Expect("Ready", "True", "Served")
	s.ExpectData("note-b", "version", "b")
}

package rights

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/harness"
)

// The roles that are printed for a file with a Package are those under which an operator serves the Package once kubectl has applied it.
func TestAPackageInAFileIsServedUnderTheRolesThatArePrintedForIt(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason string
		// source returns the source of the Package, and what else is in the file.
		source func(s *harness.Env, text string) (map[string]any, []*unstructured.Unstructured)
	}{
		"inline": {"the Package has its files", func(_ *harness.Env, text string) (map[string]any, []*unstructured.Unstructured) {
			return map[string]any{"inline": map[string]any{"main.cue": text}}, nil
		}},
		"configmap": {"a ConfigMap beside it has them, which the operator itself has to watch", func(s *harness.Env, text string) (map[string]any, []*unstructured.Unstructured) {
			files := harness.Object("v1", "ConfigMap", s.Namespace, "files")
			files.Object["data"] = map[string]any{"main.cue": text}
			return map[string]any{"configMap": map[string]any{"namespace": s.Namespace, "name": "files"}}, []*unstructured.Unstructured{files}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := harness.NewEnv(t)
			s.InstallEngineDefinitions()
			p, account := s.NewPackageObject("file"+name), s.Namespace+"/operator"
			t.Cleanup(func() { harness.RemoveForGood(t, p.Ref()) })
			source, beside := row.source(s, p.Text(editedBody))
			file := filepath.Join(t.TempDir(), "package.json")
			var text []byte
			for _, u := range append(beside, p.Object(map[string]any{"source": source})) {
				one, err := json.Marshal(u)
				if err != nil {
					t.Fatal(err)
				}
				text = append(text, one...)
			}
			harness.WriteFile(t, file, string(text))

			printed := operetta(t, "rbac", file, "--service-account", account, "--leader-election-id=")
			apply(t, printed)
			s.ActAsAccount(account)
			from := harness.MarkAudit(t)
			s.StartPackageOperator(harness.Alone)
			s.Kubectl("apply", "-f", file)
			p.Expect("Ready", "True", "Served")
			cr := s.Create(p.Thing(s, "shop", nil))
			s.ExpectResourceReady(cr)
			s.Delete(cr)
			s.ExpectGone(cr)
			s.Delete(p.Ref())
			s.ExpectGone(p.Ref())
			for _, e := range s.RequestsOf(from, s.User) {
				// Resources whose package is missing are looked for where the operator may list them; others are not its own.
				if e.Code == 403 && e.Verb != "list" {
					t.Errorf("%s: refused: %s %s", row.reason, e.Verb, e.RequestURI)
				}
			}
		})
	}
}

package e2e

import (
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"operetta.dev/test/harness"
	"operetta.dev/test/machine"
)

// dryRunBody is a package with a Secret that is written elsewhere as well.
const dryRunBody = `
#Spec: text: string

reach: {Namespace: {}, ConfigMap: namespaces: "*": true}
components: config: objects: {
	settings: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "settings", data: {text: cr.spec.text, mode: "safe"}}
	token: {apiVersion: "v1", kind: "Secret", metadata: name: "token", stringData: token: "canary-\(cr.spec.text)"}
	url: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "url", data: url: "db://me:canary-\(cr.spec.text)@db"}
}
components: web: objects: deployment: {
	apiVersion: "apps/v1"
	kind:       "Deployment"
	metadata: name: "web"
	spec: {
		replicas: 2
		selector: matchLabels: app: "web"
		template: {metadata: labels: app: "web", spec: containers: [{name: "web", image: "web:1"}]}
	}
}
`

// exitCode returns the exit code of a command.
func exitCode(err error) int {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	return 0
}

func TestADryRunOnTheClusterShowsFieldsAndNoSecret(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	p := newTestPackage(t, "rehearsed", dryRunBody)
	o := s.StartOperator(p.Dir)
	cr := s.Create(p.Thing(s.Env, "shop", map[string]any{"text": "one"}))
	s.ExpectResourceReady(cr)
	o.Stop()
	s.Patch(s.Ref("ConfigMap", "settings"), map[string]any{"data": map[string]any{"mode": "\x1b[2Jfast"}})

	file := filepath.Join(t.TempDir(), "shop.yaml")
	harness.WriteFile(t, file, "apiVersion: rehearsed.example.com/v1\nkind: Thing\nmetadata: {name: shop}\nspec: {text: two}\n")
	fresh := filepath.Join(t.TempDir(), "fresh.yaml")
	harness.WriteFile(t, fresh, "apiVersion: fresh.example.com/v1\nkind: Thing\nmetadata: {name: fresh}\nspec: {text: a}\n")
	another := newTestPackage(t, "fresh", strings.ReplaceAll(strings.ReplaceAll(dryRunBody, `name: "`, `name: "fresh-`), "canary-", "canary-new-"))
	if err := harness.InstallCRDs(t.Context(), another.Dir); err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		args      []string
		parts, no []string
	}{
		"a repair":           {[]string{p.Dir}, []string{"~ ConfigMap " + s.Namespace + "/settings\n" + `      data.mode: "\x1b[2Jfast" -> "safe"` + "\n"}, []string{"data.text", "\x1b[2J", "~ Deployment", "resourceVersion", "generation", "operetta.dev/applied"}},
		"a changed resource": {[]string{p.Dir, "-f", file}, []string{`      data.text: "one" -> "two"` + "\n", "~ Secret " + s.Namespace + "/token\n      data.token: *** -> *** (another)\n", "      data.url: *** -> *** (another)\n"}, []string{"~ Deployment"}},
		"replicas that are handed over": {
			[]string{newTestPackage(t, "rehearsed", strings.NewReplacer("replicas: 2\n", "", "web:1", "web:2").Replace(dryRunBody)).Dir},
			[]string{"~ Deployment " + s.Namespace + "/web\n" + `      spec.template.spec.containers[name=web].image: "web:1" -> "web:2"` + "\n"}, []string{"replicas"},
		},
		"a new resource": {[]string{another.Dir, "-f", fresh}, []string{"+ Secret " + s.Namespace + "/fresh-token\n      data.token: ***\n", "      spec.replicas: 2\n", "      data.url: \"db://me:***@db\"\n"}, []string{"managedFields", "ownerReferences"}},
	} {
		out, err := s.dryRun(row.args...)
		if err != nil {
			t.Errorf("%s: %v%s\n%s", name, err, harness.StderrOf(err), out)
		}
		for _, part := range row.parts {
			if !strings.Contains(out, part) {
				t.Errorf("%s: want %q in\n%s", name, part, out)
			}
		}
		for _, part := range append(row.no, "canary", "Y2FuYXJ5") {
			if strings.Contains(out, part) {
				t.Errorf("%s: want no %q in\n%s", name, part, out)
			}
		}
	}
}

func TestADryRunOnTheClusterFailsWhenTheRolloutWould(t *testing.T) {
	t.Parallel()
	machine.Thorough(t)
	s := newEnv(t)
	p := newTestPackage(t, "rejecteddry", strings.ReplaceAll(dryRunBody, "canary", "x"))
	o := s.StartOperator(p.Dir)
	s.ExpectResourceReady(s.Create(p.Thing(s.Env, "shop", map[string]any{"text": "one"})))
	o.Stop()
	for name, row := range map[string]struct {
		old, new string
		code     int
		says     string
	}{
		"the same":             {"", "", 0, ""},
		"an immutable field":   {`app: "web"`, `app: "shop"`, 1, "selector"},
		"an invalid value":     {"replicas: 2", "replicas: -2", 1, "spec.replicas"},
		"a misspelled field":   {"replicas: 2", "replica: 2", 1, "replica"},
		"another type":         {"replicas: 2", `replicas: "2"`, 1, "replicas"},
		"a namespace of none":  {`name: "url"`, `{name: "url", namespace: "nowhere"}`, 1, "nowhere"},
		"a new namespace":      {`settings: {apiVersion`, `home: {apiVersion: "v1", kind: "Namespace", metadata: name: "` + s.Namespace + `-new"}, there: {apiVersion: "v1", kind: "ConfigMap", metadata: {name: "there", namespace: "` + s.Namespace + `-new"}}, settings: {apiVersion`, 0, ""},
		"what is waited for":   {`replicas: 2`, "replicas: 3", 0, ""},
		"what was given up on": {`reach: {`, `components: bad: {objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "bad"}, failed: always: true}, reach: {`, 1, "always"},
	} {
		body := strings.ReplaceAll(dryRunBody, "canary", "x")
		if row.old != "" {
			body = strings.ReplaceAll(body, row.old, row.new)
		}
		out, err := s.dryRun(newTestPackage(t, "rejecteddry", body).Dir)
		if code := exitCode(err); code != row.code {
			t.Errorf("%s: exit code %d, want %d%s\n%s", name, code, row.code, harness.StderrOf(err), out)
		}
		if !strings.Contains(harness.StderrOf(err), row.says) {
			t.Errorf("%s: want %q in %s", name, row.says, harness.StderrOf(err))
		}
	}
}

package importer_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"operetta.dev/engine/importer"
	"operetta.dev/engine/render"
)

// application is a small original in the manner of the examples of kro.
const application = `apiVersion: kro.run/v1alpha1
kind: ResourceGraphDefinition
metadata: {name: my-application}
spec:
  schema:
    apiVersion: v1alpha1
    kind: Application
    group: apps.example.com
    spec:
      name: string | required=true description="The name of everything."
      image: string | default="nginx:1.25"
      replicas: integer | default=3 minimum=1 maximum=9
      mode: string | enum="small,large" default=small
      env: "map[string]string"
      hosts: "[]string"
      ports: "[]Port"
      ingress:
        enabled: boolean | default=false
        class: string | default="nginx" pattern="^[a-z]+$"
    types:
      Port: {number: integer | required=true, name: string}
    status:
      available: ${deployment.status.availableReplicas}
      address: "http://${service.metadata.name}.${schema.metadata.namespace}"
  resources:
  - id: settings
    externalRef: {apiVersion: v1, kind: ConfigMap, metadata: {name: "${schema.spec.name}-settings"}}
  - id: deployment
    template:
      apiVersion: apps/v1
      kind: Deployment
      metadata: {name: "${schema.spec.name}"}
      spec:
        replicas: "${schema.spec.mode == 'large' ? schema.spec.replicas * 2 : schema.spec.replicas}"
        selector: {matchLabels: {app: "${schema.spec.name}"}}
        template:
          metadata: {labels: {app: "${schema.spec.name}"}}
          spec:
            containers:
            - name: web
              image: ${schema.spec.image}
              env: [{name: LEVEL, value: "${settings.data.level}"}, {name: TEXT, value: "a \"quoted\" {brace}"}]
    readyWhen:
    - ${deployment.status.availableReplicas == deployment.spec.replicas}
  - id: service
    template:
      apiVersion: v1
      kind: Service
      metadata: {name: "${deployment.metadata.name}-svc"}
      spec: {selector: {app: "${schema.spec.name}"}, ports: [{port: 80}]}
  - id: ingress
    includeWhen: ["${schema.spec.ingress.enabled}", "${size(schema.spec.name) > 2 && !schema.spec.name.startsWith('x')}"]
    template:
      apiVersion: networking.k8s.io/v1
      kind: Ingress
      metadata: {name: "${schema.spec.name}"}
      spec: {ingressClassName: "${schema.spec.ingress.class}", defaultBackend: {service: {name: "${service.metadata.name}", port: {number: 80}}}}
`

// TestImportOfAGraphRendersWhatItsExpressionsSay renders an imported ResourceGraphDefinition with live objects.
func TestImportOfAGraphRendersWhatItsExpressionsSay(t *testing.T) {
	t.Parallel()
	result, err := importer.Import(t.Context(), objectsIn(t, application), importer.Options{Package: packageOf("application")})
	if err != nil {
		t.Fatal(err)
	}
	p, _ := load(t, result.Files, "application")
	if got := p.GroupVersionKind().String(); got != "apps.example.com/v1alpha1, Kind=Application" {
		t.Errorf("the kind is %s", got)
	}
	cr := map[string]any{
		"apiVersion": "apps.example.com/v1alpha1", "kind": "Application", "metadata": map[string]any{"name": "my"},
		"spec": map[string]any{"name": "shop", "mode": "large", "ingress": map[string]any{"enabled": true}},
	}
	out, err := render.Render(t.Context(), p, render.Input{
		CR: cr, Manifests: []map[string]any{{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "shop-settings"}, "data": map[string]any{"level": "debug"}}},
		Live: map[string]map[string]map[string]any{
			"deployment": {"deployment": {"status": map[string]any{"availableReplicas": int64(6)}}}, "service": {"service": {}},
		},
	})
	if err != nil || len(out.Faults)+len(out.Invalid) > 0 {
		t.Fatal(err, out.Faults, out.Invalid)
	}
	got := map[string]any{}
	for _, o := range out.Objects() {
		got[o.Component] = o.Manifest["spec"]
	}
	deployment, _ := got["deployment"].(map[string]any)
	ingress, _ := got["ingress"].(map[string]any)
	if diff := cmp.Diff(any(int64(6)), deployment["replicas"]); diff != "" {
		t.Errorf("replicas (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]any{"ingressClassName": "nginx", "defaultBackend": map[string]any{"service": map[string]any{"name": "shop-svc", "port": map[string]any{"number": int64(80)}}}}, ingress); diff != "" {
		t.Errorf("ingress (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]any{"available": int64(6), "address": "http://shop-svc.default"}, out.Status); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
}

// TestImportOfAGraphRefusesWhatHasNoCounterpart changes one line of a definition, with what is said of it.
func TestImportOfAGraphRefusesWhatHasNoCounterpart(t *testing.T) {
	t.Parallel()
	const image = "image: ${schema.spec.image}"
	for name, c := range map[string]struct{ old, changed, want string }{
		"a loop":                 {"  - id: service\n", "  - id: service\n    forEach: [{h: \"${schema.spec.hosts}\"}]\n", "in.yaml:1: spec.resources[2].forEach: has to be written by hand; a loop in components makes one for each element"},
		"a name of nothing":      {image, "image: ${schem.spec.image}", "in.yaml:1: spec.resources[1].template.spec.template.spec.containers[0].image: ${schem.spec.image}: schem is neither schema nor a resource"},
		"a function":             {image, "image: ${random.seededString(schema.spec.name, 3)}", "random is neither schema nor a resource"},
		"a division of integers": {image, "image: ${string(schema.spec.replicas / 2)}", "/ has to be written by hand"},
		"a macro":                {image, "image: ${schema.spec.hosts.map(h, h + 'x')[0]}", "maps, and loops such as all and map, have to be written by hand"},
		"an expression of Go":    {image, "image: ${schema.spec.}", "Syntax error"},
		"no end":                 {image, "image: a-${schema.spec.image", "${ has no end"},
		"an unknown type":        {`hosts: "[]string"`, `hosts: "[]Thing"`, "in.yaml:1: spec.schema.spec.hosts: the type Thing is not known"},
		"a marker":               {"minimum=1", "validation=x", "validation=x has to be written by hand"},
		"a marker without end":   {`default="nginx:1.25"`, `default="nginx`, `has no end`},
		"an id that is CUE":      {"- id: service", `- id: "a\nb"`, "is no name"},
		"a selector":             {`metadata: {name: "${schema.spec.name}-settings"}`, "metadata: {selector: {matchLabels: {a: b}}}", "as the labels of an input"},
		"a field that is a word": {"      image: string |", "      n: string\n      image: string |", "in.yaml:1: spec.schema.spec.false: YAML reads the names n, no and off as the boolean false, so that a user has to quote them: choose another name, or quote it in the definition, too"},
		"a field of a type":      {"{number: integer | required=true, name: string}", "{number: integer | required=true, y: string}", "in.yaml:1: spec.schema.spec.ports.true: YAML reads the names y, yes and on as the boolean true"},
		"a spec that is unknown": {"${schema.spec.name}-settings", "${schema.spec.nme}-settings", "inputs.settings.name"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := strings.Replace(application, c.old, c.changed, 1)
			if text == application {
				t.Fatalf("%q is not in the definition", c.old)
			}
			_, err := importer.Import(t.Context(), objectsIn(t, text), importer.Options{Package: packageOf("application")})
			refused, ok := errors.AsType[*importer.RefusedError](err)
			if !ok || !strings.Contains(strings.Join(refused.Reasons, "\n"), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// TestAFaultOfThePackageQuotesItsLine has a definition whose package would wait for what nothing writes. Nobody gets the
// files of such a package.
func TestAFaultOfThePackageQuotesItsLine(t *testing.T) {
	t.Parallel()
	text := strings.Replace(quickStart, "name: web, image", `name: "${schema.spec.nothing}", image`, 1)
	_, err := importer.Import(t.Context(), objectsIn(t, text), importer.Options{Package: packageOf("web")})
	refused, ok := errors.AsType[*importer.RefusedError](err)
	if !ok {
		t.Fatal(err)
	}
	for _, reason := range refused.Reasons {
		if strings.Contains(reason, "\n") || !strings.HasPrefix(reason, "in.yaml:1: the package would be wrong: ") {
			t.Errorf("%q is not one fault", reason)
		}
	}
	all := strings.Join(refused.Reasons, "\n")
	if !strings.Contains(all, "`name: cr.spec.nothing`") {
		t.Errorf("no line is quoted:\n%s", all)
	}
}

// TestAFieldWhoseNameIsQuotedIsImported has a name of which YAML makes a boolean without quotation marks.
func TestAFieldWhoseNameIsQuotedIsImported(t *testing.T) {
	t.Parallel()
	text := strings.NewReplacer("spec: {user: string | default=admin}", `spec: {"n": string | default=admin}`, "${schema.spec.user}", "${schema.spec.n}").Replace(withSecret("ConfigMap", "${schema.spec.user}"))
	result, err := importer.Import(t.Context(), objectsIn(t, text), importer.Options{Package: packageOf("login")})
	if err != nil {
		t.Fatal(err)
	}
	if text := fileOf(t, result, "login.cue"); !strings.Contains(text, `"n": *"admin" | string`) {
		t.Errorf("the field is not there:\n%s", text)
	}
}

// withSecret is a definition with a Secret, of which a value and the kind are given.
func withSecret(kind, value string) string {
	return `apiVersion: kro.run/v1alpha1
kind: ResourceGraphDefinition
metadata: {name: login}
spec:
  schema: {apiVersion: v1, kind: Login, group: apps.example.com, spec: {user: string | default=admin}}
  resources:
  - id: given
    externalRef: {apiVersion: v1, kind: Secret, metadata: {name: given}}
  - id: own
    template: {apiVersion: v1, kind: '` + kind + `', metadata: {name: own}, data: {k: '` + value + `'}}
`
}

// TestAConstantExpressionIsNoReference imports Secrets whose values are expressions, and asks where they come from.
func TestAConstantExpressionIsNoReference(t *testing.T) {
	t.Parallel()
	const refused = "in.yaml:1: spec.resources[1].template.data.k: its content would stand in the package; refer to the Secret with an externalRef, or import it with --secrets"
	for name, c := range map[string]struct{ reason, kind, value, want string }{
		"a reference to another Secret":   {"the content comes from the cluster", "Secret", `${given.data.password}`, ""},
		"a text":                          {"it is the content itself", "Secret", `${"aHVudGVyMg=="}`, refused},
		"a text in other quotation marks": {"it is the content itself", "Secret", `${"""aHVudGVyMg=="""}`, refused},
		"two texts":                       {"they are the content together", "Secret", `${"aHVu" + "dGVyMg=="}`, refused},
		"a kind that is a text":           {"it is a Secret all the same", `${"Secret"}`, "aHVudGVyMg==", refused},
		"a text in a ConfigMap":           {"it is no secret", "ConfigMap", `${"plain"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := importer.Import(t.Context(), objectsIn(t, withSecret(c.kind, c.value)), importer.Options{Package: packageOf("login")})
			got := ""
			if r, ok := errors.AsType[*importer.RefusedError](err); ok {
				got = strings.Join(r.Reasons, "\n")
			} else if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

// TestAnExpressionThatIsATextIsImportedAsThatText looks for the text in the package.
func TestAnExpressionThatIsATextIsImportedAsThatText(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ reason, value, want string }{
		"alone":                {"it is a value like another", `${"plain"}`, `data: k: "plain"`},
		"with a dollar sign":   {"it looks like an expression, and is none", `${"${schema.spec.user}"}`, `data: k: "${schema.spec.user}"`},
		"with a backslash":     {"CUE escapes it, too", `${"a\\nb"}`, `data: k: "a\\nb"`},
		"in a text":            {"nothing is to be put in there", `a-${"b"}-c`, `data: k: "a-b-c"`},
		"beside a reference":   {"only that is put in", `${"a"}-${schema.spec.user}`, `data: k: "a-\(cr.spec.user)"`},
		"a reference":          {"it stays one", `${schema.spec.user}`, `data: k: cr.spec.user`},
		"a number as a text":   {"it stays a text", `${"1"}`, `data: k: "1"`},
		"a text in a function": {"the function stays", `${"A".lowerAscii()}`, `data: k: strings.ToLower("A")`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			result, err := importer.Import(t.Context(), objectsIn(t, withSecret("ConfigMap", c.value)), importer.Options{Package: packageOf("login")})
			if err != nil {
				t.Fatal(err)
			}
			if text := strings.Join(strings.Fields(fileOf(t, result, "login.cue")), " "); !strings.Contains(text, c.want) { // aligned or not
				t.Errorf("%s: want %s in\n%s", c.reason, c.want, text)
			}
		})
	}
}

package schemas_test

import (
	"testing"

	"cuelang.org/go/cue"

	"operetta.dev/schemas"
)

// web is what most packages render.
const web = `package author

import (
	appsv1 "operetta.dev/schemas/k8s/apps/v1"
	corev1 "operetta.dev/schemas/k8s/core/v1"
	networkingv1 "operetta.dev/schemas/k8s/networking/v1"
)

cr: {name: string, replicas: int}

objects: [string]: metadata: {name: cr.name, labels: app: cr.name}
objects: deployment: appsv1.#Deployment & {
	spec: {
		replicas: cr.replicas
		selector: matchLabels: app: cr.name
		template: {
			metadata: labels: app: cr.name
			spec: containers: [{
				name:  "web"
				image: "web:1"
				ports: [{name: "http", containerPort: 8080}]
				env: [{name: "NAME", value: cr.name}]
				resources: requests: {cpu: "100m", memory: "64Mi"}
				readinessProbe: httpGet: {path: "/", port: "http"}
				volumeMounts: [{name: "tmp", mountPath: "/tmp"}]
			}]
			spec: volumes: [{name: "tmp", emptyDir: {}}]
		}
	}
}
objects: service: corev1.#Service & {
	spec: {
		selector: app: cr.name
		ports: [{name: "http", port: 80, targetPort: "http"}]
	}
}
objects: ingress: networkingv1.#Ingress & {
	spec: rules: [{
		host: "\(cr.name).example.com"
		http: paths: [{path: "/", pathType: "Prefix", backend: service: {name: cr.name, port: name: "http"}}]
	}]
}
`

// BenchmarkRender renders a Deployment, a Service and an Ingress for one custom resource. The metric
// full/light is what the full types cost at run time.
func BenchmarkRender(b *testing.B) {
	perOp := map[string]float64{}
	for _, name := range []string{"light", "full"} {
		b.Run(name, func(b *testing.B) {
			base := build(b, forms[name](), web)
			b.ReportAllocs()
			for b.Loop() {
				render(b, base)
			}
			perOp[name] = float64(b.Elapsed()) / float64(b.N)
			if light := perOp["light"]; name == "full" && light > 0 {
				b.ReportMetric(perOp["full"]/light, "full/light")
			}
		})
	}
}

// render evaluates the objects of one custom resource.
func render(b *testing.B, base cue.Value) {
	b.Helper()
	cr := map[string]any{"name": "shop", "replicas": 3}
	objects := base.FillPath(cue.ParsePath("cr"), cr).LookupPath(cue.ParsePath("objects"))
	if err := objects.Validate(cue.Concrete(true)); err != nil {
		b.Fatal(err)
	}
	if _, err := objects.MarshalJSON(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkLoad loads and builds the package, which happens once per version of it.
func BenchmarkLoad(b *testing.B) {
	for _, name := range []string{"light", "full"} {
		b.Run(name, func(b *testing.B) {
			tree := overlay(b, forms[name]())
			add(tree, "author/author.cue", []byte(web))
			b.ReportAllocs()
			for b.Loop() {
				loadPackage(b, tree, "./author")
			}
		})
	}
}

// BenchmarkHealth evaluates the readiness of one live Deployment.
func BenchmarkHealth(b *testing.B) {
	base := build(b, schemas.Light(), `package author
		import "operetta.dev/schemas/health"
		live: _
		ready: (health.#Deployment & {object: live.web.deployment}).ready`)
	live := map[string]any{"web": map[string]any{"deployment": rolledOut("Deployment", 1)}}
	b.ReportAllocs()
	for b.Loop() {
		ready, err := base.FillPath(cue.ParsePath("live"), live).LookupPath(cue.ParsePath("ready")).Bool()
		if err != nil || !ready {
			b.Fatal(ready, err)
		}
	}
}

package patch_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/patch"
	"operetta.dev/engine/program"
	"operetta.dev/test/inline"
)

// The manifests that patches are tried on.
const (
	confined = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop, labels: {app: shop}}
spec:
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec:
      serviceAccountName: shop
      securityContext: {runAsNonRoot: true}
      containers:
      - {name: web, image: "web:1", securityContext: {allowPrivilegeEscalation: false}, envFrom: [{secretRef: {name: shop}}]}
      volumes: [{name: config, configMap: {name: shop}}]
`
	bare = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop}
spec: {template: {spec: {containers: [{name: web, image: "web:1"}]}}}
`
	cronjob = `
apiVersion: batch/v1
kind: CronJob
metadata: {name: shop}
spec: {schedule: "* * * * *", jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: web, image: "web:1"}]}}}}}
`
	pod = `
apiVersion: v1
kind: Pod
metadata: {name: shop}
spec: {containers: [{name: web, image: "web:1"}]}
`
	unknown = `
apiVersion: example.com/v1
kind: Cluster
metadata: {name: shop}
spec: {size: 3, pods: {template: {spec: {containers: [{name: db, image: "db:1"}]}}}}
`
	service = `
apiVersion: v1
kind: Service
metadata: {name: shop}
spec: {ports: [{port: 80}]}
`
	ingress = `
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: shop}
spec: {rules: [{host: shop.example.com, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: shop, port: {number: 80}}}}]}}]}
`
	route = `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: shop}
spec: {parentRefs: [{name: shop}], hostnames: [shop.example.com], rules: [{backendRefs: [{name: shop, port: 80}]}]}
`
	binding = `
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: shop}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: shop}
subjects: [{kind: ServiceAccount, name: shop}]
`
)

// guarded applies one change to one object and returns the report.
func guarded(t *testing.T, manifest, change string, open ...string) (map[string]any, patch.Report) {
	t.Helper()
	o := objectOf(t, "it", manifest)
	for _, path := range open {
		if o.Patchable == nil {
			o.Patchable = map[string]bool{}
		}
		o.Patchable[path] = true
	}
	before := []program.Component{{Name: "web", When: program.WhenResult{Verdict: program.True}, Objects: []program.Object{o}}}
	after, reports := patch.Apply(before, []patch.Patch{newPatch(t, "p", 0, "[{address: web.it, "+change+"}]")}, nil)
	return after[0].Objects[0].Manifest, reports[0]
}

// podPatch is a change of the pods of a Deployment.
func podPatch(change string) string {
	return "strategicMerge: {spec: {template: {spec: {" + change + "}}}}"
}

func TestAPatchGivesNoRights(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		manifest, change string
		// field is what the refusal names, and what the package would open.
		field string
	}{
		"another service account":           {confined, podPatch(`serviceAccountName: admin-sa`), "spec.template.spec.serviceAccountName"},
		"its old name":                      {bare, podPatch(`serviceAccount: admin-sa`), "spec.template.spec.serviceAccount"},
		"a token that the package kept out": {bare, podPatch(`automountServiceAccountToken: true`), "spec.template.spec.automountServiceAccountToken"},
		"the node's processes":              {bare, podPatch(`hostPID: true`), "spec.template.spec.hostPID"},
		"the node's network":                {bare, podPatch(`hostNetwork: true`), "spec.template.spec.hostNetwork"},
		"the node's memory":                 {bare, podPatch(`hostIPC: true`), "spec.template.spec.hostIPC"},
		"a port of the node": {
			bare, podPatch(`containers: [{name: web, ports: [{containerPort: 80, hostPort: 80}]}]`), "spec.template.spec.containers[].ports[].hostPort",
		},
		"the node's files": {
			confined, podPatch(`volumes: [{name: root, hostPath: {path: /}}]`), "spec.template.spec.volumes[].hostPath",
		},
		"the node's files in place of a ConfigMap": {
			confined, podPatch(`volumes: [{name: config, configMap: null, hostPath: {path: /}}]`), "spec.template.spec.volumes[].hostPath",
		},
		"privileged": {
			bare, podPatch(`containers: [{name: web, securityContext: {privileged: true}}]`), "spec.template.spec.containers[].securityContext",
		},
		"capabilities": {
			confined, podPatch(`containers: [{name: web, securityContext: {capabilities: {add: [SYS_ADMIN]}}}]`), "spec.template.spec.containers[].securityContext",
		},
		"escalation":                           {confined, podPatch(`containers: [{name: web, securityContext: {allowPrivilegeEscalation: true}}]`), "spec.template.spec.containers[].securityContext"},
		"no confinement any more":              {confined, podPatch(`containers: [{name: web, securityContext: null}]`), "spec.template.spec.containers[].securityContext"},
		"the pod's confinement":                {confined, podPatch(`securityContext: {runAsNonRoot: false}`), "spec.template.spec.securityContext"},
		"another container without":            {confined, podPatch(`containers: [{name: more, image: "evil:1"}]`), "spec.template.spec.containers[].securityContext"},
		"another container with more":          {bare, podPatch(`initContainers: [{name: more, image: "evil:1", securityContext: {privileged: true}}]`), "spec.template.spec.initContainers[].securityContext"},
		"a token as a volume":                  {bare, podPatch(`volumes: [{name: t, projected: {sources: [{serviceAccountToken: {path: t}}]}}]`), "spec.template.spec.volumes[].projected.sources[].serviceAccountToken"},
		"a Secret as a volume":                 {bare, podPatch(`volumes: [{name: t, secret: {secretName: other}}]`), "spec.template.spec.volumes[].secret"},
		"a Secret among projected ones":        {bare, podPatch(`volumes: [{name: t, projected: {sources: [{secret: {name: other}}]}}]`), "spec.template.spec.volumes[].projected.sources[].secret"},
		"the data of somebody else":            {bare, podPatch(`volumes: [{name: t, persistentVolumeClaim: {claimName: other}}]`), "spec.template.spec.volumes[].persistentVolumeClaim"},
		"a Secret in the environment":          {bare, podPatch(`containers: [{name: web, envFrom: [{secretRef: {name: other}}]}]`), "spec.template.spec.containers[].envFrom[].secretRef"},
		"another Secret in the environment":    {confined, `json6902: [{op: replace, path: /spec/template/spec/containers/0/envFrom/0/secretRef/name, value: other}]`, "spec.template.spec.containers[].envFrom[].secretRef"},
		"a key of a Secret in the environment": {bare, podPatch(`containers: [{name: web, env: [{name: A, valueFrom: {secretKeyRef: {name: other, key: k}}}]}]`), "spec.template.spec.containers[].env[].valueFrom.secretKeyRef"},
		"credentials of a registry":            {bare, podPatch(`imagePullSecrets: [{name: other}]`), "spec.template.spec.imagePullSecrets"},
		"a node of its choice":                 {bare, podPatch(`nodeName: control-plane`), "spec.template.spec.nodeName"},
		"a request of the node":                {bare, podPatch(`containers: [{name: web, livenessProbe: {httpGet: {host: 169.254.169.254, port: 80}}}]`), "spec.template.spec.containers[].livenessProbe.httpGet.host"},
		"a profile by an old annotation":       {bare, `strategicMerge: {spec: {template: {metadata: {annotations: {container.apparmor.security.beta.kubernetes.io/web: unconfined}}}}}`, "spec.template.metadata.annotations.container.apparmor.security.beta.kubernetes.io/web"},
		"by an operation": {
			bare, `json6902: [{op: add, path: /spec/template/spec/hostPID, value: true}]`, "spec.template.spec.hostPID",
		},
		"by the parent": {
			bare, `json6902: [{op: replace, path: /spec/template, value: {spec: {hostPID: true, containers: [{name: web, image: "web:1"}]}}}]`, "spec.template.spec.hostPID",
		},
		"by a directive": {
			bare, podPatch(`$patch: replace, hostPID: true, containers: [{name: web, image: "web:1"}]`), "spec.template.spec.hostPID",
		},
		"by a copy": {
			bare, `json6902: [{op: add, path: /metadata/annotations, value: {hostPath: x}}, {op: add, path: /spec/template/spec/volumes, value: [{name: t, emptyDir: {}}]}, {op: add, path: /spec/template/spec/volumes/0/hostPath, value: {path: /}}, {op: remove, path: /spec/template/spec/volumes/0/emptyDir}]`,
			"spec.template.spec.volumes[].hostPath",
		},
		"in a CronJob": {
			cronjob, `strategicMerge: {spec: {jobTemplate: {spec: {template: {spec: {hostNetwork: true}}}}}}`, "spec.jobTemplate.spec.template.spec.hostNetwork",
		},
		"in a Pod": {pod, `strategicMerge: {spec: {hostNetwork: true}}`, "spec.hostNetwork"},
		"in a kind that nobody knows": {
			unknown, `strategicMerge: {spec: {pods: {template: {spec: {serviceAccountName: admin-sa}}}}}`, "spec.pods.template.spec.serviceAccountName",
		},
		"in a template that was not there": {
			unknown, `strategicMerge: {spec: {backup: {podTemplate: {spec: {volumes: [{name: r, hostPath: {path: /}}]}}}}}`, "spec.backup.podTemplate.spec.volumes[].hostPath",
		},
		"addresses of others":      {service, `strategicMerge: {spec: {externalIPs: [10.0.0.1]}}`, "spec.externalIPs"},
		"a name outside":           {service, `strategicMerge: {spec: {type: ExternalName, externalName: evil.example.com}}`, "spec.externalName"},
		"an address of a pool":     {service, `strategicMerge: {spec: {type: LoadBalancer, loadBalancerIP: 10.0.0.1}}`, "spec.loadBalancerIP"},
		"the Secret of an Ingress": {ingress, `strategicMerge: {spec: {tls: [{secretName: other}]}}`, "spec.tls[].secretName"},
		"another host":             {ingress, `json6902: [{op: replace, path: /spec/rules/0/host, value: bank.example.com}]`, "spec.rules[].host"},
		"one host more":            {ingress, `json6902: [{op: add, path: /spec/rules/-, value: {host: bank.example.com}}]`, "spec.rules[].host"},
		"all hosts":                {ingress, `json6902: [{op: add, path: /spec/rules/-, value: {http: {paths: []}}}]`, "spec.rules[].host"},
		"all hosts, by a default":  {ingress, `strategicMerge: {spec: {defaultBackend: {service: {name: shop, port: {number: 80}}}}}`, "spec.defaultBackend"},
		"a certificate of others":  {ingress, `strategicMerge: {spec: {tls: [{hosts: [bank.example.com]}]}}`, "spec.tls[].hosts"},
		"another entrance":         {ingress, `strategicMerge: {spec: {ingressClassName: public}}`, "spec.ingressClassName"},
		"a host by an annotation":  {ingress, `strategicMerge: {metadata: {annotations: {nginx.ingress.kubernetes.io/server-alias: bank.example.com}}}`, "metadata.annotations.nginx.ingress.kubernetes.io/server-alias"},
		"a Secret by an annotation": {
			ingress, `strategicMerge: {metadata: {annotations: {nginx.ingress.kubernetes.io/auth-tls-secret: bank/authority}}}`, "metadata.annotations.nginx.ingress.kubernetes.io/auth-tls-secret",
		},
		"the certificate of others": {
			ingress, `strategicMerge: {metadata: {annotations: {nginx.ingress.kubernetes.io/proxy-ssl-secret: bank/client}}}`, "metadata.annotations.nginx.ingress.kubernetes.io/proxy-ssl-secret",
		},
		"the configuration of all hosts": {
			ingress, `strategicMerge: {metadata: {annotations: {nginx.ingress.kubernetes.io/stream-snippet: "server {}"}}}`, "metadata.annotations.nginx.ingress.kubernetes.io/stream-snippet",
		},
		"a snippet of another controller": {
			ingress, `strategicMerge: {metadata: {annotations: {nginx.org/server-snippets: "location / {}"}}}`, "metadata.annotations.nginx.org/server-snippets",
		},
		"a name in DNS":          {service, `strategicMerge: {metadata: {annotations: {external-dns.alpha.kubernetes.io/hostname: bank.example.com}}}`, "metadata.annotations.external-dns.alpha.kubernetes.io/hostname"},
		"the host of a route":    {route, `strategicMerge: {spec: {hostnames: [bank.example.com]}}`, "spec.hostnames"},
		"the gateway of a route": {route, `strategicMerge: {spec: {parentRefs: [{name: public, namespace: infra}]}}`, "spec.parentRefs"},
		"the host of a gateway": {
			"apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {name: shop}\nspec: {listeners: [{name: web, port: 80}]}",
			`json6902: [{op: add, path: /spec/listeners/0/hostname, value: bank.example.com}]`, "spec.listeners[].hostname",
		},
		"all hosts of a gateway": {
			"apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {name: shop}\nspec: {listeners: [{name: web, port: 80, hostname: shop.example.com}]}",
			`json6902: [{op: add, path: /spec/listeners/-, value: {name: all, port: 80}}]`, "spec.listeners[].hostname",
		},
		"all hosts of a route": {route, `json6902: [{op: remove, path: /spec/hostnames}]`, "spec.hostnames"},
		"a host in an expression": {
			"apiVersion: traefik.io/v1alpha1\nkind: IngressRoute\nmetadata: {name: shop}\nspec: {routes: [{match: Host(`shop.example.com`)}]}",
			"json6902: [{op: replace, path: /spec/routes/0/match, value: Host(`bank.example.com`)}]", "spec.routes[].match",
		},
		"a host below the domain of all":        {"apiVersion: route.openshift.io/v1\nkind: Route\nmetadata: {name: shop}\nspec: {}", `strategicMerge: {spec: {subdomain: bank}}`, "spec.subdomain"},
		"the host of a route that nobody knows": {"apiVersion: route.openshift.io/v1\nkind: Route\nmetadata: {name: shop}\nspec: {}", `strategicMerge: {spec: {host: bank.example.com}}`, "spec.host"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			manifest, report := guarded(t, tc.manifest, tc.change)
			if len(report.Unmatched) != 1 {
				t.Fatalf("it was let through: %+v", manifest)
			}
			expectMiss(t, "it is said how to open it", report.Unmatched[0], patch.NotPatchable, `patchable: "`+tc.field+`": true`)
			if diff := cmp.Diff(inline.Object(t, tc.manifest).Object, manifest); diff != "" {
				t.Errorf("the object is not the package's (-want +got):\n%s", diff)
			}
			if _, opened := guarded(t, tc.manifest, tc.change, tc.field); len(opened.Applied) != 1 {
				t.Errorf("although the package has opened it: %+v", opened.Unmatched)
			}
		})
	}
}

func TestSomeKindsAreNotForPatches(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		manifest, change string
		open             []string
		want             patch.Reason // "" is applied
	}{
		"a binding":                          {binding, `strategicMerge: {subjects: [{kind: User, name: alice}]}`, nil, patch.NotPatchable},
		"a label of it":                      {binding, `strategicMerge: {metadata: {labels: {a: b}}}`, nil, patch.NotPatchable},
		"its role, of which other is open":   {binding, `json6902: [{op: replace, path: /roleRef/name, value: admin}]`, []string{"subjects"}, patch.NotPatchable},
		"its subjects, which are open":       {binding, `json6902: [{op: replace, path: /subjects/0/name, value: other}]`, []string{"subjects"}, ""},
		"a Secret's type":                    {secret, `strategicMerge: {type: kubernetes.io/service-account-token, metadata: {annotations: {kubernetes.io/service-account.name: admin-sa}}}`, nil, patch.NotPatchable},
		"a Secret's type beside open data":   {secret, `strategicMerge: {type: kubernetes.io/service-account-token}`, []string{"data"}, patch.NotPatchable},
		"a Secret's data":                    {secret, `strategicMerge: {data: {key: b3RoZXI=}}`, nil, patch.NotPatchable},
		"a Secret's data, which is open":     {secret, `strategicMerge: {data: {key: b3RoZXI=}}`, []string{"data"}, ""},
		"other data than what is open":       {secret, `strategicMerge: {data: {other: b3RoZXI=}}`, []string{"data.key"}, patch.NotPatchable},
		"a guess of a Secret, which is open": {secret, `json6902: [{op: test, path: /data/key, value: dG9w}]`, []string{"data"}, patch.NotPatchable},
		"a copy of it":                       {secret, `json6902: [{op: copy, from: /data/key, path: /metadata/annotations}]`, []string{"data", "metadata"}, patch.NotPatchable},
		"a service account":                  {"apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: shop}", `strategicMerge: {metadata: {annotations: {eks.amazonaws.com/role-arn: admin}}}`, nil, patch.NotPatchable},
		"a ConfigMap, whatever its keys":     {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shop}\ndata: {client_secret: a, hostPath: b}", `strategicMerge: {data: {client_secret: b, hostPath: c}}`, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, report := guarded(t, tc.manifest, tc.change, tc.open...)
			got := patch.Reason("")
			for _, m := range report.Unmatched {
				got = m.Reason
			}
			if got != tc.want {
				t.Errorf("reason is %q, want %q: %+v", got, tc.want, report)
			}
		})
	}
}

func TestWhatGivesNoRightsIsPatchable(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ manifest, change string }{
		"image":                                {confined, podPatch(`containers: [{name: web, image: "web:2"}]`)},
		"environment":                          {confined, podPatch(`containers: [{name: web, env: [{name: A, value: b}]}]`)},
		"a ConfigMap more":                     {confined, podPatch(`volumes: [{name: more, configMap: {name: other}}]`)},
		"one more source of the environment":   {confined, `json6902: [{op: add, path: /spec/template/spec/containers/0/envFrom/0, value: {configMapRef: {name: other}}}]`},
		"another container as confined as is":  {confined, podPatch(`containers: [{name: more, image: "more:1", securityContext: {allowPrivilegeEscalation: false}}]`)},
		"another container":                    {bare, podPatch(`containers: [{name: more, image: "more:1"}]`)},
		"a container less":                     {bare, podPatch(`containers: [{name: web, $patch: delete}, {name: more, image: "more:1"}]`)},
		"the name of a pod":                    {bare, podPatch(`hostname: web, hostAliases: [{ip: 10.0.0.1, hostnames: [db]}]`)},
		"the same in a kind that nobody knows": {unknown, `strategicMerge: {spec: {pods: {template: {spec: {hostAliases: [{ip: 10.0.0.1, hostnames: [db]}]}}}}}`},
		"another path of the same host":        {ingress, `json6902: [{op: add, path: /spec/rules/0/http/paths/0, value: {path: /new, pathType: Prefix, backend: {service: {name: new, port: {number: 80}}}}}]`},
		"how an Ingress answers":               {ingress, `strategicMerge: {metadata: {annotations: {nginx.ingress.kubernetes.io/proxy-read-timeout: "60"}}}`},
		"where a route leads":                  {route, `json6902: [{op: add, path: /spec/rules/-, value: {backendRefs: [{name: new, port: 80}]}}]`},
		"labels that sound like it":            {bare, `strategicMerge: {metadata: {labels: {example.com/secret: "no", hostPath: "no"}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, report := guarded(t, tc.manifest, tc.change); len(report.Applied) != 1 {
				t.Errorf("it is refused: %+v", report.Unmatched)
			}
		})
	}
}

func TestNoPackageOpensWhatTheEngineGoesBy(t *testing.T) {
	t.Parallel()
	open := []string{"metadata", "spec", "metadata.finalizers", "metadata.annotations", "apiVersion", "kind"}
	for name, change := range map[string]string{
		"a finalizer":              `strategicMerge: {metadata: {finalizers: [evil/x]}}`,
		"an owner":                 `strategicMerge: {metadata: {ownerReferences: [{apiVersion: v1, kind: Pod, name: x, uid: u}]}}`,
		"a mark":                   `strategicMerge: {metadata: {annotations: {operetta.dev/adopt: "true"}}}`,
		"the owner's label":        `strategicMerge: {metadata: {labels: {operetta.dev/owner: other}}}`,
		"a mark of its pods":       `strategicMerge: {spec: {template: {metadata: {labels: {operetta.dev/owner: other}}}}}`,
		"a mark with all the rest": `json6902: [{op: add, path: /metadata/annotations, value: {operetta.dev/delete: orphan}}]`,
		"the kind":                 `json6902: [{op: replace, path: /kind, value: DaemonSet}]`,
		"the metadata":             `json6902: [{op: remove, path: /metadata}]`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			manifest, report := guarded(t, bare, change, open...)
			if len(report.Unmatched) != 1 || report.Unmatched[0].Reason != patch.Invalid {
				t.Errorf("reported as %+v", report)
			}
			if diff := cmp.Diff(inline.Object(t, bare).Object, manifest); diff != "" {
				t.Errorf("the object is not the package's (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAPatchSaysWhichKindItIsFor(t *testing.T) {
	t.Parallel()
	const change = `strategicMerge: {spec: {minReadySeconds: 3}}`
	for name, tc := range map[string]struct {
		said, refusal string
	}{
		"nothing":         {"", ""},
		"its kind":        {"apiVersion: apps/v1, kind: Deployment, ", ""},
		"another version": {"apiVersion: apps/v1beta1, kind: Deployment, ", ""},
		"another kind":    {"apiVersion: v1, kind: ConfigMap, ", "is for a ConfigMap"},
		"another group":   {"apiVersion: example.com/v1, kind: Deployment, ", "Deployment.example.com"},
		"half":            {"kind: Deployment, ", "both apiVersion and kind"},
		"two groups":      {"apiVersion: apps/v1/v1, kind: Deployment, ", "must be a group and a version"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, report := guarded(t, bare, tc.said+change)
			if tc.refusal == "" {
				if len(report.Applied) != 1 {
					t.Errorf("it is refused: %+v", report.Unmatched)
				}
				return
			}
			expectMiss(t, "what was meant is another object", report.Unmatched[0], patch.Invalid, tc.refusal)
		})
	}
}

func TestAnOperationThatNobodyCanCarryOutIsInvalid(t *testing.T) {
	t.Parallel()
	for name, operation := range map[string]string{
		"test of the whole object without a value": `{op: test, path: ""}`,
		"test of the whole object":                 `{op: test, path: "", value: {}}`,
		"add without a value":                      `{op: add, path: /spec/paused}`,
		"replace without a value":                  `{op: replace, path: /spec/template}`,
		"removal of the whole object":              `{op: remove, path: ""}`,
		"a path that is no pointer":                `{op: remove, path: spec}`,
		"a pointer with a wrong escape":            `{op: remove, path: /a~2b}`,
		"move from nowhere":                        `{op: move, path: /spec/a}`,
		"an operation that does not exist":         `{op: drop, path: /spec/a}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, report := guarded(t, bare, "json6902: ["+operation+"]")
			if len(report.Unmatched) != 1 || report.Unmatched[0].Reason != patch.Invalid {
				t.Errorf("reported as %+v", report)
			}
		})
	}
}

func TestPatchesHaveBounds(t *testing.T) {
	t.Parallel()
	_, report := guarded(t, unknown, `strategicMerge: {spec: {text: `+strings.Repeat("x", 2<<20)+`}}`)
	if len(report.Unmatched) != 1 || report.Unmatched[0].Reason != patch.Invalid {
		t.Errorf("2 MiB were taken")
	}
	var doubled []string
	for i := range 200 {
		doubled = append(doubled, fmt.Sprintf(`{op: add, path: /spec/text%d, value: %s}`, i, strings.Repeat("x", 250)))
	}
	var steady []patch.Patch
	for range 70 {
		steady = append(steady, newPatch(t, "p", 0, `[{address: extra.gadget, json6902: [`+strings.Join(doubled, ", ")+`]}]`))
	}
	_, reports := apply(t, steady...)
	refused := 0
	for _, r := range reports {
		if len(r.Unmatched) > 0 && r.Unmatched[0].Reason == patch.TooMany {
			refused++
		}
	}
	if refused != 6 {
		t.Errorf("of 70 patches %d were too many", refused)
	}
}

func TestALargePatchIsKeptAsItsTarget(t *testing.T) {
	t.Parallel()
	large := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{
			"target":  map[string]any{"apiVersion": "example.com/v1", "kind": "Shop", "name": "my"},
			"patches": []any{map[string]any{"address": "web.it", "strategicMerge": map[string]any{"spec": strings.Repeat("x", 1<<20)}}},
		},
		"status": map[string]any{"conditions": []any{map[string]any{"message": strings.Repeat("x", 1<<20)}}},
	}}
	large.SetName("large")
	large.SetAnnotations(map[string]string{"a": strings.Repeat("x", 1<<17)})
	if p := patch.Parse(large); !strings.Contains(p.Invalid, "larger than") {
		t.Errorf("Invalid is %q", p.Invalid)
	}
	patch.Trim(large)
	if text, _ := large.MarshalJSON(); len(text) > 1000 {
		t.Errorf("%d bytes are kept", len(text))
	}
	p := patch.Parse(large)
	if p.Target.Name != "my" || !strings.Contains(p.Invalid, "larger than") {
		t.Errorf("it is about %v, and Invalid is %q", p.Target, p.Invalid)
	}
	small := newPatchObject(t, "small", 0, `[{address: web.deployment, strategicMerge: {spec: {replicas: 5}}}]`)
	want := patch.Parse(small)
	patch.Trim(small)
	if diff := cmp.Diff(want, patch.Parse(small)); diff != "" {
		t.Errorf("a small one is another (-want +got):\n%s", diff)
	}
}

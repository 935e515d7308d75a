package cluster_test

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"operetta.dev/test/clustertest"
)

// The parts of manifests of which a row changes one.
const (
	pod      = `{metadata: {labels: {app: x}}, spec: {containers: [{name: a, image: "a:1"}]}}`
	endless  = `{spec: {restartPolicy: Always, containers: [{name: a, image: "a:1"}]}}`
	once     = `{spec: {restartPolicy: Never, containers: [{name: a, image: "a:1"}]}}`
	selected = `selector: {matchLabels: {app: x}}, template: ` + pod
)

func meta(name string) string { return `metadata: {name: ` + name + `}` }

func workload(kind, spec string) string {
	return `{apiVersion: apps/v1, kind: ` + kind + `, ` + meta("x") + `, spec: {` + spec + `}}`
}

// ofPod is a Deployment with something in its only container, and something in its pod.
func ofPod(container, spec string) string {
	return workload("Deployment", `selector: {matchLabels: {app: x}}, template: {metadata: {labels: {app: x}}, spec: {containers: [{name: a, image: "a:1"`+container+`}]`+spec+`}}`)
}

func core(kind, rest string) string {
	return `{apiVersion: v1, kind: ` + kind + `, ` + meta("x") + rest + `}`
}

func ofJob(spec string) string {
	return `{apiVersion: batch/v1, kind: Job, ` + meta("x") + `, spec: {` + spec + `}}`
}

func cron(spec string) string {
	return `{apiVersion: batch/v1, kind: CronJob, ` + meta("x") + `, spec: {` + spec + `, jobTemplate: {spec: {template: ` + once + `}}}}`
}

func ofService(spec string) string { return core("Service", `, spec: {`+spec+`}`) }

func ingress(path string) string {
	return `{apiVersion: networking.k8s.io/v1, kind: Ingress, ` + meta("x") + `, spec: {rules: [{host: a.example.com, http: {paths: [` + path + `]}}]}}`
}

func rbac(kind, rest string) string {
	return `{apiVersion: rbac.authorization.k8s.io/v1, kind: ` + kind + `, ` + meta("x") + `, ` + rest + `}`
}

func budget(spec string) string {
	return `{apiVersion: policy/v1, kind: PodDisruptionBudget, ` + meta("x") + `, spec: {` + spec + `}}`
}

func scaler(spec string) string {
	return `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, ` + meta("x") + `, spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: x}` + spec + `}}`
}

func policy(spec string) string {
	return `{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, ` + meta("x") + `, spec: {podSelector: {}` + spec + `}}`
}

func claim(spec string) string { return core("PersistentVolumeClaim", `, spec: {`+spec+`}`) }

// accepted are objects that an API server takes.
var accepted = map[string]string{
	"a Deployment":                       workload("Deployment", selected),
	"a Deployment with all there is":     ofPod(`, imagePullPolicy: Always, env: [{name: A, value: b}, {name: "a.b-c", valueFrom: {secretKeyRef: {name: s, key: k}}}], ports: [{name: http, containerPort: 80}], volumeMounts: [{name: v, mountPath: /v}], resources: {requests: {cpu: 100m}, limits: {cpu: 1, example.com/gpu: 1}}, readinessProbe: {httpGet: {path: /, port: http}}`, `, volumes: [{name: v, configMap: {name: c}}], terminationGracePeriodSeconds: 0, tolerations: [{operator: Exists}], nodeSelector: {a: b}`),
	"a volume without a source":          ofPod(`, volumeMounts: [{name: v, mountPath: /v}]`, `, volumes: [{name: v}]`),
	"no replicas":                        workload("Deployment", `replicas: 0, `+selected),
	"a header without a value":           ofPod(`, livenessProbe: {httpGet: {port: 80, httpHeaders: [{name: X-A, value: ""}]}}`, ``),
	"Recreate":                           workload("Deployment", `strategy: {type: Recreate}, `+selected),
	"a StatefulSet":                      workload("StatefulSet", `serviceName: x, volumeClaimTemplates: [{metadata: {name: d}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}], selector: {matchLabels: {app: x}}, template: {metadata: {labels: {app: x}}, spec: {containers: [{name: a, image: "a:1", volumeMounts: [{name: d, mountPath: /d}]}]}}`),
	"a StatefulSet without a Service":    workload("StatefulSet", selected),
	"a DaemonSet":                        workload("DaemonSet", selected),
	"a ReplicaSet":                       workload("ReplicaSet", selected),
	"a Job":                              ofJob(`template: ` + once),
	"a CronJob":                          cron(`schedule: "*/5 0-6,12 1 jan-mar mon-fri"`),
	"a CronJob each hour":                cron(`schedule: "@hourly"`),
	"a Pod":                              core("Pod", `, spec: {containers: [{name: a, image: "a:1"}]}`),
	"a Service":                          ofService(`selector: {app: x}, ports: [{port: 80, targetPort: http}]`),
	"a headless Service without ports":   ofService(`clusterIP: None, selector: {app: x}`),
	"a Service elsewhere":                ofService(`type: ExternalName, externalName: example.com`),
	"a Service at nodes":                 ofService(`type: NodePort, externalTrafficPolicy: Local, ports: [{port: 80, name: a}, {port: 81, name: b}]`),
	"a ConfigMap":                        core("ConfigMap", `, data: {a.b_c-D: x}, binaryData: {b: aGk=}`),
	"an empty ConfigMap":                 core("ConfigMap", ``),
	"a Secret":                           core("Secret", `, stringData: {a: b}`),
	"a TLS Secret":                       core("Secret", `, type: kubernetes.io/tls, stringData: {tls.crt: "", tls.key: ""}`),
	"a ServiceAccount":                   core("ServiceAccount", ``),
	"a claim":                            claim(`accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}`),
	"an Ingress":                         ingress(`{path: /a, pathType: Prefix, backend: {service: {name: x, port: {number: 80}}}}`),
	"an Ingress with a default only":     `{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: x}, spec: {defaultBackend: {service: {name: x, port: {name: http}}}}}`,
	"a NetworkPolicy":                    policy(`, policyTypes: [Ingress], ingress: [{from: [{ipBlock: {cidr: 10.0.0.0/8}}, {podSelector: {}, namespaceSelector: {}}], ports: [{port: 80}]}]`),
	"a Role without rules":               rbac("Role", `rules: []`),
	"a Role with any name":               strings.Replace(rbac("Role", `rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]`), "name: x", `name: "system:X"`, 1),
	"a RoleBinding":                      rbac("RoleBinding", `roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}, subjects: [{kind: User, name: a, apiGroup: rbac.authorization.k8s.io}, {kind: ServiceAccount, name: a, namespace: b}]`),
	"a PodDisruptionBudget":              budget(`minAvailable: 50%, selector: {matchLabels: {app: x}}`),
	"an empty PodDisruptionBudget":       budget(``),
	"a HorizontalPodAutoscaler":          scaler(`, minReplicas: 1, maxReplicas: 3, metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}]`),
	"a LimitRange":                       core("LimitRange", `, spec: {limits: [{type: Container, default: {cpu: 1}}]}`),
	"a ResourceQuota":                    core("ResourceQuota", `, spec: {hard: {pods: 1}}`),
	"a Lease":                            `{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: x}, spec: {holderIdentity: a, leaseDurationSeconds: 1}}`,
	"null asks for the field's absence":  core("ConfigMap", `, data: {a: null}`),
	"a PodTemplate":                      `{apiVersion: v1, kind: PodTemplate, metadata: {name: x}, template: ` + pod + `}`,
	"labels and annotations of any kind": `{apiVersion: v1, kind: ConfigMap, metadata: {name: a.b.c, labels: {example.com/A: "", b: "1.2_x"}, annotations: {example.com/b: "any { thing"}}}`,
}

// refused are objects that an API server does not take, and where it says what is wrong,
// if it says so.
var refused = map[string][2]string{
	"no selector":                                  {workload("Deployment", `template: `+pod), "spec.selector"},
	"no template":                                  {workload("Deployment", `selector: {matchLabels: {app: x}}`), "spec.template"},
	"no spec":                                      {`{apiVersion: apps/v1, kind: Deployment, metadata: {name: x}}`, "spec.selector"},
	"no containers":                                {workload("Deployment", `selector: {matchLabels: {app: x}}, template: {metadata: {labels: {app: x}}, spec: {containers: []}}`), "spec.template.spec.containers"},
	"no image":                                     {workload("Deployment", `selector: {matchLabels: {app: x}}, template: {metadata: {labels: {app: x}}, spec: {containers: [{name: a}]}}`), "spec.template.spec.containers[0].image"},
	"fewer than no replicas":                       {workload("Deployment", `replicas: -5, `+selected), "spec.replicas"},
	"a selector for others":                        {workload("Deployment", `selector: {matchLabels: {app: z}}, template: `+pod), "spec.template.metadata.labels"},
	"a selector for all":                           {workload("Deployment", `selector: {}, template: `+pod), "spec.selector"},
	"a Deployment that ends":                       {workload("Deployment", `selector: {matchLabels: {app: x}}, template: {metadata: {labels: {app: x}}, spec: {restartPolicy: Never, containers: [{name: a, image: "a:1"}]}}`), "spec.template.spec.restartPolicy"},
	"a misspelled field":                           {workload("Deployment", `replica: 3, `+selected), "spec.replica"},
	"a misspelled field far below":                 {ofPod(`, readynessProbe: {tcpSocket: {port: 80}}`, ``), "readynessProbe"},
	"a text for a number":                          {workload("Deployment", `replicas: "3", `+selected), "spec.replicas: expected numeric (int or float), and it is a string"},
	"a number for a text":                          {core("ConfigMap", `, data: {a: 1}`), "data.a: expected string, and it is a number"},
	"an object for a text":                         {core("ConfigMap", `, data: {a: {b: c}}`), "data.a: expected string, and it is an object"},
	"a text for a list":                            {ofPod(`, command: run`, ``), "expected list, and it is a string"},
	"a text for a boolean":                         {ofPod(`, tty: "yes"`, ``), "expected boolean, and it is a string"},
	"a number that is too large":                   {workload("Deployment", `replicas: 3000000000, `+selected), ""},
	"no quantity":                                  {ofPod(`, resources: {limits: {memory: 1 GB}}`, ``), ""},
	"no such strategy":                             {workload("Deployment", `strategy: {type: Bogus}, `+selected), "spec.strategy"},
	"two strategies":                               {workload("Deployment", `strategy: {type: Recreate, rollingUpdate: {maxSurge: 1}}, `+selected), "spec.strategy.rollingUpdate"},
	"no such pull policy":                          {ofPod(`, imagePullPolicy: Sometimes`, ``), "imagePullPolicy"},
	"no port":                                      {ofPod(`, ports: [{name: a}]`, ``), "containerPort"},
	"a port beyond all":                            {ofPod(`, ports: [{containerPort: 70000}]`, ``), "containerPort"},
	"a long name of a port":                        {ofPod(`, ports: [{name: a-very-long-name, containerPort: 70}]`, ``), "ports[0].name"},
	"a mount of nothing":                           {ofPod(`, volumeMounts: [{name: v, mountPath: /v}]`, ``), "volumeMounts[0].name"},
	"a mount to nowhere":                           {ofPod(`, volumeMounts: [{name: v}]`, `, volumes: [{name: v}]`), "mountPath"},
	"two sources of a volume":                      {ofPod(``, `, volumes: [{name: v, emptyDir: {}, hostPath: {path: /}}]`), "volumes[0]"},
	"a volume of no ConfigMap":                     {ofPod(``, `, volumes: [{name: v, configMap: {}}]`), "configMap.name"},
	"a volume of a strange name":                   {ofPod(``, `, volumes: [{name: v_w}]`), "volumes[0].name"},
	"a value from two places":                      {ofPod(`, env: [{name: a, value: b, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]`, ``), "valueFrom"},
	"a value from nowhere":                         {ofPod(`, env: [{name: a, valueFrom: {}}]`, ``), "valueFrom"},
	"a variable with an equals sign":               {ofPod(`, env: [{name: "a=b", value: c}]`, ``), "env[0].name"},
	"more requested than allowed":                  {ofPod(`, resources: {requests: {cpu: 2}, limits: {cpu: 1}}`, ``), "resources.requests"},
	"less than nothing requested":                  {ofPod(`, resources: {requests: {cpu: -1}}`, ``), "resources"},
	"a resource that nobody has":                   {ofPod(`, resources: {requests: {disk: 1}}`, ``), "resources"},
	"a probe of nothing":                           {ofPod(`, livenessProbe: {periodSeconds: 1}`, ``), "livenessProbe"},
	"a probe of two things":                        {ofPod(`, livenessProbe: {tcpSocket: {port: 1}, httpGet: {port: 1}}`, ``), "livenessProbe"},
	"a toleration of nothing":                      {ofPod(``, `, tolerations: [{effect: NoSchedule}]`), "tolerations[0].operator"},
	"no such operator":                             {ofPod(``, `, tolerations: [{key: a, operator: Sometimes}]`), "tolerations[0].operator"},
	"a strange container":                          {ofPod(`, lifecycle: {}, name: A_b`, ``), ""},
	"no new pods forever":                          {workload("Deployment", `strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 0}}, `+selected), "maxUnavailable"},
	"a StatefulSet without a selector":             {workload("StatefulSet", `template: `+pod), "spec.selector"},
	"a DaemonSet without a selector":               {workload("DaemonSet", `template: `+pod), "spec."},
	"a Job without an end":                         {ofJob(`template: ` + endless), "restartPolicy"},
	"a Job that says no policy":                    {ofJob(`template: ` + pod), "restartPolicy"},
	"a Job done fewer than no times":               {ofJob(`completions: -1, template: ` + once), "spec.completions"},
	"a Job that selects":                           {ofJob(`selector: {matchLabels: {a: b}}, template: ` + once), ""},
	"a schedule of four fields":                    {cron(`schedule: "* * * *"`), "spec.schedule"},
	"a schedule of no time":                        {cron(`schedule: "61 * * * *"`), "spec.schedule"},
	"no schedule":                                  {cron(`suspend: true`), "spec.schedule"},
	"no such concurrency":                          {cron(`schedule: "* * * * *", concurrencyPolicy: Never`), "spec.concurrencyPolicy"},
	"a Service of a strange name":                  {`{apiVersion: v1, kind: Service, metadata: {name: "Invalid_Name!"}, spec: {ports: [{port: 80}]}}`, "metadata.name"},
	"a Service with dots":                          {`{apiVersion: v1, kind: Service, metadata: {name: x.y}, spec: {ports: [{port: 80}]}}`, "metadata.name"},
	"a StatefulSet with dots":                      {`{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: x.y}, spec: {` + selected + `}}`, "metadata.name"},
	"a Deployment with an underscore":              {`{apiVersion: apps/v1, kind: Deployment, metadata: {name: x_y}, spec: {` + selected + `}}`, "metadata.name"},
	"a Pod of a long name":                         {`{apiVersion: v1, kind: Pod, metadata: {name: ` + strings.Repeat("x", 254) + `}, spec: {containers: [{name: a, image: "a:1"}]}}`, ""},
	"a CronJob of a long name":                     {`{apiVersion: batch/v1, kind: CronJob, metadata: {name: ` + strings.Repeat("x", 53) + `}, spec: {schedule: "@daily", jobTemplate: {spec: {template: ` + once + `}}}}`, "metadata.name"},
	"a Job of a long name":                         {`{apiVersion: batch/v1, kind: Job, metadata: {name: ` + strings.Repeat("x", 64) + `}, spec: {template: ` + once + `}}`, ""},
	"a Deployment's selector that matches nothing": {workload("Deployment", `selector: {matchExpressions: [{key: app, operator: In}]}, template: `+pod), "spec.selector"},
	"a weight beyond all":                          {ofPod(``, `, affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1000, podAffinityTerm: {topologyKey: a}}]}}`), "weight"},
	"a spread of nothing":                          {ofPod(``, `, topologySpreadConstraints: [{maxSkew: 0, topologyKey: a, whenUnsatisfiable: DoNotSchedule}]`), "maxSkew"},
	"a spread over nothing":                        {ofPod(``, `, topologySpreadConstraints: [{maxSkew: 1, whenUnsatisfiable: DoNotSchedule}]`), "topologyKey"},
	"a user below all":                             {ofPod(``, `, securityContext: {runAsUser: -1}`), "runAsUser"},
	"a hook of nothing":                            {ofPod(`, lifecycle: {preStop: {}}`, ``), "preStop"},
	"a container twice":                            {workload("Deployment", `selector: {matchLabels: {app: x}}, template: {metadata: {labels: {app: x}}, spec: {initContainers: [{name: a, image: "a:1"}], containers: [{name: a, image: "a:1"}]}}`), "name"},
	"a finalizer of a strange name":                {`{apiVersion: v1, kind: ConfigMap, metadata: {name: x, finalizers: [x]}}`, "metadata.finalizers"},
	"a source of nothing":                          {ofPod(`, envFrom: [{}]`, ``), "envFrom"},
	"a Secret for an account that is not named":    {core("Secret", `, type: kubernetes.io/service-account-token`), "withheld"},
	"a login without a name":                       {core("Secret", `, type: kubernetes.io/basic-auth`), "withheld"},
	"a registry's login that is no JSON":           {core("Secret", `, type: kubernetes.io/dockerconfigjson, stringData: {.dockerconfigjson: x}`), "withheld"},
	"a large ConfigMap":                            {core("ConfigMap", `, data: {a: `+strings.Repeat("x", 1<<20+1)+`}`), ""},
	"a quota of apples":                            {core("ResourceQuota", `, spec: {hard: {pods: -1}}`), "spec.hard"},
	"a Service without ports":                      {ofService(`selector: {app: x}`), "spec.ports"},
	"a Service at no port":                         {ofService(`ports: [{name: a}]`), "spec.ports[0].port"},
	"ports without names":                          {ofService(`ports: [{port: 1}, {port: 2}]`), "spec.ports[0].name"},
	"a port twice":                                 {ofService(`ports: [{port: 1, name: a}, {port: 1, name: b}]`), ""},
	"no such type":                                 {ofService(`type: NotAType, ports: [{port: 1}]`), "spec.type"},
	"a node's port":                                {ofService(`ports: [{port: 1, nodePort: 30123}]`), "nodePort"},
	"no address":                                   {ofService(`clusterIP: nowhere, ports: [{port: 1}]`), "clusterIP"},
	"a Service nowhere":                            {ofService(`type: ExternalName`), "spec.externalName"},
	"no such protocol":                             {ofService(`ports: [{port: 1, protocol: tcp}]`), "protocol"},
	"a key of a ConfigMap":                         {core("ConfigMap", `, data: {"l-9 x/y": a}`), "data[l-9 x/y]"},
	"a key twice":                                  {core("ConfigMap", `, data: {a: b}, binaryData: {a: aGk=}`), "a"},
	"no base64":                                    {core("ConfigMap", `, binaryData: {a: "%"}`), ""},
	"a key of a Secret":                            {core("Secret", `, stringData: {"a b": c}`), "withheld"},
	"a TLS Secret without a key":                   {core("Secret", `, type: kubernetes.io/tls, stringData: {tls.crt: a}`), "withheld"},
	"a name in capitals":                           {`{apiVersion: v1, kind: ConfigMap, metadata: {name: X}}`, "metadata.name"},
	"a label with a space":                         {`{apiVersion: v1, kind: ConfigMap, metadata: {name: x, labels: {a: "b c"}}}`, "metadata.labels"},
	"a label of a strange name":                    {`{apiVersion: v1, kind: ConfigMap, metadata: {name: x, labels: {"a/b/c": d}}}`, "metadata.labels"},
	"a label that is a number":                     {`{apiVersion: v1, kind: ConfigMap, metadata: {name: x, labels: {a: 1}}}`, "metadata.labels"},
	"an annotation of a strange name":              {`{apiVersion: v1, kind: ConfigMap, metadata: {name: x, annotations: {"a b": d}}}`, "metadata.annotations"},
	"a claim of nothing":                           {claim(`accessModes: [ReadWriteOnce]`), "spec.resources"},
	"a claim for nobody":                           {claim(`resources: {requests: {storage: 1Gi}}`), "spec.accessModes"},
	"no such access":                               {claim(`accessModes: [Sometimes], resources: {requests: {storage: 1Gi}}`), "spec.accessModes"},
	"an Ingress of nothing":                        {`{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: x}, spec: {}}`, "spec"},
	"an Ingress to nowhere":                        {ingress(`{path: /a, pathType: Prefix, backend: {service: {name: x}}}`), "backend"},
	"a relative path":                              {ingress(`{path: a, pathType: Prefix, backend: {service: {name: x, port: {number: 80}}}}`), "path"},
	"a path without its type":                      {ingress(`{path: /a, backend: {service: {name: x, port: {number: 80}}}}`), "pathType"},
	"no such path type":                            {ingress(`{path: /a, pathType: Regex, backend: {service: {name: x, port: {number: 80}}}}`), "pathType"},
	"a peer that is nobody":                        {policy(`, ingress: [{from: [{}]}]`), "from[0]"},
	"no addresses":                                 {policy(`, ingress: [{from: [{ipBlock: {cidr: 10.0.0.0}}]}]`), "cidr"},
	"a rule without verbs":                         {rbac("Role", `rules: [{apiGroups: [""], resources: [pods]}]`), "rules[0].verbs"},
	"a rule without groups":                        {rbac("Role", `rules: [{resources: [pods], verbs: [get]}]`), "rules[0].apiGroups"},
	"a rule on paths":                              {rbac("Role", `rules: [{nonResourceURLs: [/x], verbs: [get]}]`), "nonResourceURLs"},
	"a binding to nothing":                         {rbac("RoleBinding", `subjects: [{kind: User, name: a}]`), "roleRef"},
	"a binding to a Pod":                           {rbac("RoleBinding", `roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Pod, name: a}`), "roleRef.kind"},
	"a binding of an account nowhere":              {rbac("ClusterRoleBinding", `roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: a}, subjects: [{kind: ServiceAccount, name: a}]`), "subjects[0].namespace"},
	"both sides of a budget":                       {budget(`minAvailable: 1, maxUnavailable: 1`), "spec"},
	"a budget of apples":                           {budget(`minAvailable: apples`), "spec.minAvailable"},
	"no more than none":                            {scaler(`, maxReplicas: 0`), "spec.maxReplicas"},
	"more than most":                               {scaler(`, minReplicas: 3, maxReplicas: 2`), "maxReplicas"},
	"a metric of no type":                          {scaler(`, maxReplicas: 2, metrics: [{resource: {name: cpu, target: {type: Utilization}}}]`), ""},
}

// siteOfPods returns a site where there may be Pods: admission wants their account.
func siteOfPods(t *testing.T) *clustertest.Site {
	t.Helper()
	s := clustertest.New(t)
	s.Put("somebody", parse(t, s, `{apiVersion: v1, kind: ServiceAccount, metadata: {name: default}}`))
	return s
}

func TestTheSameObjectsAreRefusedInMemoryAndByAnAPIServer(t *testing.T) {
	t.Parallel()
	for name, manifest := range accepted {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := siteOfPods(t)
			if _, err := s.Apply(t.Context(), parse(t, s, manifest)); err != nil {
				t.Errorf("it is refused: %v", err)
			}
			if err := s.Probe(t.Context(), parse(t, s, manifest)); err != nil {
				t.Errorf("its probe is refused: %v", err)
			}
		})
	}
	for name, row := range refused {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := clustertest.New(t)
			_, err := s.Apply(t.Context(), parse(t, s, row[0]))
			if err == nil {
				t.Error("it is accepted")
			} else if !strings.Contains(err.Error(), row[1]) {
				t.Errorf("got %v, want %s in it", err, row[1])
			}
		})
	}
}

func TestTheSameChangesAreRefusedInMemoryAndByAnAPIServer(t *testing.T) {
	t.Parallel()
	another := strings.ReplaceAll(selected, "app: x", "app: z")
	for name, row := range map[string]struct {
		before, after string
		refused       bool
	}{
		"the image of a Deployment":        {workload("Deployment", selected), workload("Deployment", strings.Replace(selected, "a:1", "a:2", 1)), false},
		"the selector of a Deployment":     {workload("Deployment", selected), workload("Deployment", another), true},
		"the selector of a DaemonSet":      {workload("DaemonSet", selected), workload("DaemonSet", another), true},
		"the replicas of a StatefulSet":    {workload("StatefulSet", selected), workload("StatefulSet", `replicas: 3, `+selected), false},
		"the Service of a StatefulSet":     {workload("StatefulSet", `serviceName: a, `+selected), workload("StatefulSet", `serviceName: b, `+selected), true},
		"the image of a Job":               {ofJob(`template: ` + once), ofJob(`template: ` + strings.Replace(once, "a:1", "a:2", 1)), true},
		"how many of a Job run":            {ofJob(`template: ` + once), ofJob(`parallelism: 2, template: ` + once), false},
		"the ports of a Service":           {ofService(`ports: [{port: 80}]`), ofService(`ports: [{port: 81}]`), false},
		"a Service that becomes headless":  {ofService(`clusterIP: None, ports: [{port: 80}]`), ofService(`clusterIP: 10.0.0.77, ports: [{port: 80}]`), true},
		"the type of a Secret":             {core("Secret", `, type: a.example.com/b`), core("Secret", `, type: a.example.com/c`), true},
		"an immutable ConfigMap":           {core("ConfigMap", `, immutable: true, data: {a: b}`), core("ConfigMap", `, immutable: true, data: {a: c}`), true},
		"the labels of such":               {core("ConfigMap", `, immutable: true, data: {a: b}`), strings.Replace(core("ConfigMap", `, immutable: true, data: {a: b}`), "name: x", "name: x, labels: {a: b}", 1), false},
		"a claim that shrinks":             {claim(`accessModes: [ReadWriteOnce], resources: {requests: {storage: 2Gi}}`), claim(`accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}`), true},
		"the access of a claim":            {claim(`accessModes: [ReadWriteOnce], resources: {requests: {storage: 2Gi}}`), claim(`accessModes: [ReadWriteMany], resources: {requests: {storage: 2Gi}}`), true},
		"the role of a binding":            {rbac("RoleBinding", `roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: a}`), rbac("RoleBinding", `roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: b}`), true},
		"the rules of a role":              {rbac("Role", `rules: []`), rbac("Role", `rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]`), false},
		"what becomes wrong":               {workload("Deployment", selected), workload("Deployment", `replicas: -1, `+selected), true},
		"the image of a Pod":               {core("Pod", `, spec: {containers: [{name: a, image: "a:1"}]}`), core("Pod", `, spec: {containers: [{name: a, image: "a:2"}]}`), false},
		"the command of a Pod":             {core("Pod", `, spec: {containers: [{name: a, image: "a:1"}]}`), core("Pod", `, spec: {containers: [{name: a, image: "a:1", command: [b]}]}`), true},
		"a budget becomes one of the kind": {budget(`minAvailable: 1`), budget(`maxUnavailable: 1`), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := siteOfPods(t)
			there := apply(t, s, parse(t, s, row.before))
			changed := parse(t, s, row.after)
			changed.SetUID(there.GetUID())
			_, err := s.Apply(t.Context(), changed)
			if (err != nil) != row.refused {
				t.Errorf("got %v, want it refused: %v", err, row.refused)
			}
			if err != nil && !apierrors.IsInvalid(err) {
				t.Errorf("got %v, want it to be invalid", err)
			}
		})
	}
}

package check_test

// A mutant is a fault that is put into a package of the repository.
type mutant struct {
	kind string
	// dir is the package, and file one of its files. In it, from becomes to, or to is added at the end.
	dir, file, from, to string
}

const (
	queue      = "test/e2e/packages/queue"
	team       = "test/e2e/packages/team"
	kafka      = "test/e2e/packages/kafka"
	kafkatopic = "test/e2e/packages/kafkatopic"
	platform   = "test/e2e/packages/platform"
	webapp     = "cue/webapp"
)

// The kinds of mutants.
const (
	liveField     = "a misspelled field of a live object"
	hiddenField   = "a default that hides a misspelled field"
	renderedField = "a misspelled field of a rendered object"
	emptyList     = "an index into a list that may be empty"
	unsetField    = "a reference to a field that may be left out"
	conflict      = "a conflict for some value"
	duplicate     = "an object twice in some mode"
	deadlock      = "components that wait for each other"
	wrongType     = "a value of a wrong type for some value"
	tooWide       = "a schema that allows more than Kubernetes"
	neverTrue     = "a predicate that is never true"
	arithmetic    = "an operation that fails for some value"
	restless      = "an object that changes with every reconcile"
	missingField  = "a required field that is missing for some value"
	untrusted     = "a dangerous field that a user decides"
	badName       = "a name that Kubernetes does not accept for some value"
)

// mutants are the faults. The first one of each kind is tried in every run of the tests, and is one of the cheaper ones.
var mutants = []mutant{
	{liveField, queue, "brokers.cue", "(*live.brokers.statefulset.status.availableReplicas | 0)*2", "live.brokers.statefulset.status.availableReplica*2"},
	{liveField, queue, "brokers.cue", "verify: quorum:", "verify: ready: live.brokers.statefulset.status.readyReplica >= 1\n\tverify: quorum:"},
	{liveField, webapp, "web.cue", "live.web.deployment.spec.template.metadata.annotations.\"", "live.web.deployment.spec.template.metadata.annotation.\""},
	{liveField, webapp, "extras.cue", "	dependsOn: web: until: \"applied\"\n\n	objects: pdb", "	verify: allowed: live.availability.pdb.status.disruptionAllowed >= 1\n\n	objects: pdb"},
	{liveField, kafka, "kafka.cue", "bootstrap: components.brokers.outputs.bootstrap", "bootstrap: live.brokers.service.spec.clusterIPp"},

	{hiddenField, queue, "queue.cue", "status.availableReplicas", "status.avaliableReplicas"},
	{hiddenField, kafka, "kafka.cue", "status.availableReplicas", "status.availableReplica"},
	{hiddenField, webapp, "webapp.cue", "status.availableReplicas | 0", "status.availableReplicaz | 0"},
	{hiddenField, webapp, "web.cue", "_available: *live.web.deployment.status.availableReplicas", "_available: *live.web.deployment.status.availablereplicas"},

	{renderedField, queue, "exporter.cue", "image: cr.spec.exporter.image", "imag: cr.spec.exporter.image"},
	{renderedField, queue, "brokers.cue", "serviceName: ", "serviceNam: "},
	{renderedField, team, "environments.cue", "podSelector: {}\n", "podSelectors: {}\n"},
	{renderedField, kafka, "brokers.cue", "containers: [{", "container: [{"},
	{renderedField, webapp, "extras.cue", "maxUnavailable: cr", "maxUnavailabel: cr"},

	{emptyList, team, "team.cue", "live: _\n", "live: _\ncomponents: first: objects: configmap: {apiVersion: \"v1\", kind: \"ConfigMap\", metadata: name: \"first\", data: user: _users[0].name}\n"},
	{emptyList, kafka, "kafka.cue", "live: _\n", "live: _\ncomponents: first: objects: configmap: {apiVersion: \"v1\", kind: \"ConfigMap\", metadata: name: \"first\", data: topic: _topics[0].name}\n"},
	{emptyList, platform, "parts.cue", "users: [for name in _admins {\"name\": name, role: \"admin\"}]", "users: [{name: _admins[0], role: \"admin\"}]"},
	{emptyList, platform, "parts.cue", "metadata: {name: _name, labels: _labels}\n	spec: {\n		environments", "metadata: {name: _name, labels: {_labels, first: cr.spec.environments[0]}}\n	spec: {\n		environments"},

	{unsetField, kafkatopic, "kafkatopic.cue", "		if cr.spec.config != _|_ {\n			for k, v in cr.spec.config {\"config.\\(k)\": v}\n		}\n", "		for k, v in cr.spec.config {\"config.\\(k)\": v}\n"},
	{unsetField, webapp, "extras.cue", "if cr.spec.ingress.className != _|_ {ingressClassName: cr.spec.ingress.className}", "ingressClassName: cr.spec.ingress.className"},
	{unsetField, webapp, "config.cue", "	if cr.spec.files != _|_ {cr.spec.files}", "	cr.spec.files"},
	{unsetField, queue, "config.cue", "	if cr.spec.settings != _|_ {cr.spec.settings}", "	cr.spec.settings"},
	{unsetField, kafka, "topics.cue", "if t.config != _|_ {config: t.config}", "config: t.config"},

	{conflict, team, "environments.cue", "		if #environment.isolated {\n", "		if !#environment.isolated {quota: spec: hard: pods: \"1000000\"}\n		if #environment.isolated {\n"},
	{conflict, queue, "exporter.cue", "", "\nif cr.spec.exporter.enabled {components: brokers: objects: service: spec: clusterIP: \"10.0.0.1\"}\n"},
	{conflict, kafka, "brokers.cue", "", "\nif cr.spec.external {components: brokers: objects: service: spec: clusterIP: \"\"}\n"},
	{conflict, webapp, "extras.cue", "", "\nif cr.spec.ingress.enabled {components: web: objects: service: spec: ports: [{port: 443}]}\n"},
	{conflict, webapp, "extras.cue", "", "\nif cr.spec.autoscaling.enabled {components: web: objects: deployment: metadata: name: \"other\"}\n"},
	{conflict, queue, "brokers.cue", "", "\nif cr.spec.brokers > 5 {components: brokers: objects: statefulset: spec: podManagementPolicy: \"OrderedReady\"}\n"},

	{duplicate, kafka, "kafka.cue", "live: _\n", "live: _\nif cr.spec.external {components: brokers: objects: again: {apiVersion: \"v1\", kind: \"Service\", metadata: name: _name, spec: ports: [{port: 1}]}}\n"},
	{duplicate, queue, "exporter.cue", "	objects: deployment", "	objects: scrape: {apiVersion: \"v1\", kind: \"Service\", metadata: name: _name, spec: ports: [{port: 9100}]}\n	objects: deployment"},
	{duplicate, queue, "exporter.cue", "	objects: deployment", "	objects: again: {apiVersion: \"v1\", kind: \"ConfigMap\", metadata: name: \"\\(_name)-topics\"}\n	objects: deployment"},
	{duplicate, webapp, "extras.cue", "	objects: ingress:", "	objects: again: {apiVersion: \"v1\", kind: \"ConfigMap\", metadata: name: _name}\n	objects: ingress:"},

	{deadlock, queue, "config.cue", "	objects: configmap: corev1", "	requires: brokers: live.brokers.statefulset.metadata.name != \"\"\n	objects: configmap: corev1"},
	{deadlock, webapp, "config.cue", "	outputs: {", "	requires: web: live.web.service.metadata.name != \"\"\n	outputs: {"},
	{deadlock, kafka, "brokers.cue", "	outputs: bootstrap", "	if cr.spec.external {dependsOn: listeners: {}}\n	outputs: bootstrap"},
	{deadlock, queue, "exporter.cue", "	when: cr.spec.exporter.enabled\n", "	when: cr.spec.exporter.enabled\n	requires: self: live.exporter.deployment.metadata.name != \"\"\n"},
	{deadlock, platform, "parts.cue", "components: team: objects: team: {", "components: team: requires: database: live.database.postgres.metadata.name != \"\"\ncomponents: team: objects: team: {"},

	{wrongType, kafkatopic, "kafkatopic.cue", "replicas:   \"\\(cr.spec.replicas)\"", "replicas:   cr.spec.replicas"},
	{wrongType, queue, "brokers.cue", "replicas:            cr.spec.brokers", "replicas:            \"\\(cr.spec.brokers)\""},
	{wrongType, team, "environments.cue", "pods:           \"\\(#environment.pods)\"", "pods:           [#environment.pods]"},
	{wrongType, webapp, "web.cue", "		value: v\n", "		value: len(v)\n"},

	{tooWide, queue, "spec.cue", "brokers: int & >=1 & <=9 | *3", "brokers: int & >=-1 & <=9 | *3"},
	{tooWide, webapp, "spec.cue", "port: int & >=1 & <=65535 | *80", "port: int & >=0 & <=65535 | *80"},
	{tooWide, webapp, "spec.cue", "port: int & >=1 & <=65535 | *80", "port: int & >=1 & <=70000 | *80"},
	{tooWide, webapp, "spec.cue", "minReplicas: int & >=1", "minReplicas: int & >=-5"},
	{tooWide, webapp, "spec.cue", "		@crd(rule=\"self.minReplicas <= self.maxReplicas\", message=\"minReplicas cannot be more than maxReplicas\")\n", ""},

	{neverTrue, queue, "brokers.cue", "*2 > cr.spec.brokers", " > cr.spec.brokers"},
	{neverTrue, webapp, "web.cue", "_available >= _wanted", "_available > _wanted"},
	{neverTrue, webapp, "web.cue", "annotations.\"example.com/config\" == components", "annotations.\"example.com/config\" != components"},
	{neverTrue, kafka, "brokers.cue", "	outputs: bootstrap", "	verify: all: live.brokers.statefulset.status.readyReplicas == 0\n	outputs: bootstrap"},

	{arithmetic, webapp, "web.cue", "\"example.com/config\": components", "\"example.com/share\": \"\\(div(100, cr.spec.replicas))\"\n						\"example.com/config\": components"},
	{arithmetic, team, "environments.cue", "\"requests.cpu\": #environment.cpu", "\"requests.cpu\": \"\\(div(1000, #environment.pods))\""},
	{arithmetic, queue, "brokers.cue", "replicas:            cr.spec.brokers", "replicas:            div(9, cr.spec.brokers-1)"},
	{arithmetic, kafkatopic, "kafkatopic.cue", "partitions: \"\\(cr.spec.partitions)\"", "partitions: \"\\(div(10, cr.spec.partitions-cr.spec.replicas))\""},

	{restless, kafkatopic, "kafkatopic.cue", "		labels: \"kafka", "		annotations: seen: *live.topic.configmap.metadata.resourceVersion | \"\"\n		labels: \"kafka"},
	{restless, queue, "exporter.cue", "metadata: {name: \"\\(_name)-exporter\", labels: _labels}", "metadata: {name: \"\\(_name)-exporter\", labels: _labels, annotations: seen: *live.exporter.deployment.metadata.resourceVersion | \"\"}"},
	{restless, webapp, "extras.cue", "	objects: pdb: policyv1.#PodDisruptionBudget & {\n		metadata: _meta\n", "	objects: pdb: policyv1.#PodDisruptionBudget & {\n		metadata: {_meta, annotations: seen: *live.availability.pdb.metadata.resourceVersion | \"\"}\n"},

	{missingField, kafka, "brokers.cue", "ports: [{name: \"kafka\", port: 9092}]\n				}\n			}\n		}\n	}\n}", "ports: [{name: \"kafka\"}]\n				}\n			}\n		}\n	}\n}"},
	{missingField, queue, "exporter.cue", "			selector: matchLabels: _exporter\n", ""},
	{missingField, webapp, "extras.cue", "maxReplicas: cr.spec.autoscaling.maxReplicas", ""},
	{missingField, team, "environments.cue", "					policyTypes: [\"Ingress\"]\n", "					egress: [{ports: [{protocol: \"NONE\"}]}]\n"},

	{untrusted, queue, "exporter.cue", "				spec: containers: [{", "				spec: serviceAccountName: cr.spec.exporter.image\n				spec: containers: [{"},
	{untrusted, kafkatopic, "kafkatopic.cue", "components: topic: objects:", "components: topic: objects: other: {apiVersion: \"v1\", kind: cr.spec.topic, metadata: name: cr.metadata.name}\ncomponents: topic: objects:"},
	{untrusted, webapp, "config.cue", "type:     \"Opaque\"", "type:     cr.spec.image"},
	{untrusted, kafka, "brokers.cue", "				template: {\n					metadata: labels: _labels\n", "				template: {\n					spec: hostNetwork: cr.spec.external\n					metadata: labels: _labels\n"},

	{badName, kafka, "brokers.cue", "metadata: {name: \"\\(_name)-\\(i)\", labels: _labels}", "metadata: {name: \"\\(_name)_\\(i)\", labels: _labels}"},
	{badName, queue, "exporter.cue", "name: \"\\(_name)-exporter\", labels: _labels}", "name: \"\\(_name)-Exporter\", labels: _labels}"},
	{badName, team, "environments.cue", "name: \"same-namespace\"", "name: \"same namespace\""},
	{badName, webapp, "extras.cue", "	objects: ingress: networkingv1.#Ingress & {\n		metadata: _meta\n", "	objects: ingress: networkingv1.#Ingress & {\n		metadata: {name: \"\\(_name)!\"}\n"},
}

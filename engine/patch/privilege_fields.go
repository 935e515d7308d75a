package patch

import (
	"slices"
	"strings"
)

// privilegeFields are the fields, of any kind, that give privileges on the node, in the cluster
// or on the data of other users.
var privilegeFields = []string{
	// Privileges and user of a pod on its node.
	"allowPrivilegeEscalation", "appArmorProfile", "capabilities", "fsGroup", "hostIP", "hostIPC", "hostNetwork", "hostPID", "hostPath",
	"hostPort", "hostUsers", "podSecurityContext", "privileged", "procMount", "runAsGroup", "runAsNonRoot", "runAsUser",
	"seLinuxOptions", "seccompProfile", "securityContext", "supplementalGroups", "sysctls", "windowsOptions",
	// Scheduling and priority.
	"nodeName", "priorityClassName", "resourceClaims", "runtimeClassName",
	// Storage of other users.
	"dataSource", "dataSourceRef", "volumeName",
	// Traffic of other users.
	"externalIPs", "externalName", "loadBalancerIP",
	// Bindings of roles.
	"clusterRoleRef", "roleRef",
}

// privilegeWords are parts of the names of fields that refer to a Secret or to an identity.
var privilegeWords = []string{"secret", "serviceaccount"}

// probeFields are the fields in which the node, and not the pod, connects to a host.
var probeFields = []string{"grpc", "httpGet", "tcpSocket"}

// routingFields are the fields of kinds other than workloads that decide which requests an
// object receives. With the host of another object, it would receive requests meant for that
// object; another gateway or ingress class exposes it to other clients.
var routingFields = []string{
	"defaultBackend", "fqdn", "gateways", "host", "hostname", "hostnames", "hosts", "ingressClassName", "parentRefs", "subdomain",
	"wildcardPolicy",
}

// hostsByItem are, for each kind, the lists of which an item without a host receives the requests
// of all hosts: a patch that adds such an item takes them all.
var hostsByItem = map[string]map[string]string{
	"Gateway": {"listeners": "hostname"},
	"Ingress": {"rules": "host"},
}

// workloadGroups are the API groups whose kinds route no requests: a host in them is the name of
// a pod or a target of its connections.
var workloadGroups = []string{"", "apps", "batch"}

// privilegeKeyPrefixes are prefixes of labels and annotations that give a pod an identity, lift
// its confinement, or route the traffic of other users to it.
var privilegeKeyPrefixes = []string{
	"azure.workload.identity/",
	"container.apparmor.security.beta.kubernetes.io/",
	"container.seccomp.security.alpha.kubernetes.io/",
	"eks.amazonaws.com/",
	"external-dns.alpha.kubernetes.io/",
	"iam.amazonaws.com/",
	"iam.gke.io/",
	"kubernetes.io/ingress.class",
	"nginx.ingress.kubernetes.io/auth-secret",
	"nginx.ingress.kubernetes.io/auth-tls-secret",
	"nginx.ingress.kubernetes.io/proxy-ssl-secret",
	"nginx.ingress.kubernetes.io/server-alias",
	"seccomp.security.alpha.kubernetes.io/",
}

// snippetSuffixes are suffixes of annotations whose value becomes a part of the configuration of an ingress controller, which
// has the certificates and the traffic of all users.
var snippetSuffixes = []string{"-snippet", "-snippets"}

// isPrivilegeKey reports whether a label or an annotation of this name gives privileges.
func isPrivilegeKey(key string) bool {
	return slices.ContainsFunc(privilegeKeyPrefixes, func(prefix string) bool { return strings.HasPrefix(key, prefix) }) ||
		slices.ContainsFunc(snippetSuffixes, func(suffix string) bool { return strings.HasSuffix(key, suffix) })
}

// isPrivilegeField reports whether a field of this name gives privileges.
func isPrivilegeField(name string) bool {
	lower := strings.ToLower(name)
	return slices.Contains(privilegeFields, name) || slices.ContainsFunc(privilegeWords, func(w string) bool { return strings.Contains(lower, w) })
}

package patch

import (
	"slices"
	"strings"
)

// rights are the fields, of whatever object, that give rights on the node, in the
// cluster or to the data of others.
var rights = []string{
	// What a pod may do on its node, and as whom it runs there.
	"allowPrivilegeEscalation", "appArmorProfile", "capabilities", "fsGroup", "hostIP", "hostIPC", "hostNetwork", "hostPID", "hostPath",
	"hostPort", "hostUsers", "podSecurityContext", "privileged", "procMount", "runAsGroup", "runAsNonRoot", "runAsUser",
	"seLinuxOptions", "seccompProfile", "securityContext", "supplementalGroups", "sysctls", "windowsOptions",
	// Where it runs, and before whom.
	"nodeName", "priorityClassName", "resourceClaims", "runtimeClassName",
	// Storage of others.
	"dataSource", "dataSourceRef", "volumeName",
	// Traffic of others.
	"externalIPs", "externalName", "loadBalancerIP",
	// Whom a role is given.
	"clusterRoleRef", "roleRef",
}

// rightWords are parts of the names of fields that refer to a Secret, or to an identity.
var rightWords = []string{"secret", "serviceaccount"}

// probes are the fields in which a host is one that the node, and not the pod, talks to.
var probes = []string{"grpc", "httpGet", "tcpSocket"}

// routes are the fields of whatever is no workload that say whose requests come in: a host that
// another one has as well takes requests away from it, and another entrance is for others.
var routes = []string{
	"defaultBackend", "fqdn", "gateways", "host", "hostname", "hostnames", "hosts", "ingressClassName", "parentRefs",
}

// workloads are the groups whose kinds have hosts only as what their pods are called, and
// whom they talk to.
var workloads = []string{"", "apps", "batch"}

// rightMarks begin labels and annotations that give a pod an identity, take away what
// confines it, or bring it the traffic of others.
var rightMarks = []string{
	"azure.workload.identity/",
	"container.apparmor.security.beta.kubernetes.io/",
	"container.seccomp.security.alpha.kubernetes.io/",
	"eks.amazonaws.com/",
	"external-dns.alpha.kubernetes.io/",
	"iam.amazonaws.com/",
	"iam.gke.io/",
	"kubernetes.io/ingress.class",
	"nginx.ingress.kubernetes.io/configuration-snippet",
	"nginx.ingress.kubernetes.io/server-alias",
	"nginx.ingress.kubernetes.io/server-snippet",
	"seccomp.security.alpha.kubernetes.io/",
}

// givesRights reports whether a field gives rights, by its name.
func givesRights(name string) bool {
	lower := strings.ToLower(name)
	return slices.Contains(rights, name) || slices.ContainsFunc(rightWords, func(w string) bool { return strings.Contains(lower, w) })
}

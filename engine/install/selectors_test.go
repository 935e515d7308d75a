package install

import (
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"operetta.dev/engine/object"
	"operetta.dev/engine/rbac"
)

// selectorsOf returns the pods of some objects, and what selects them by the kinds and names of these.
func selectorsOf(t *testing.T, objects []any) (pods corev1.PodTemplateSpec, selectors map[string]labels.Selector, policy networkingv1.NetworkPolicy) {
	t.Helper()
	selectors = map[string]labels.Selector{}
	add := func(name string, s *metav1.LabelSelector) {
		t.Helper()
		selector, err := metav1.LabelSelectorAsSelector(s)
		if err != nil {
			t.Fatal(err)
		}
		selectors[name] = selector
	}
	for _, o := range objects {
		switch u := o.(type) {
		case *appsv1.Deployment:
			pods = u.Spec.Template
			add("Deployment", u.Spec.Selector)
		case *appsv1.StatefulSet:
			pods = u.Spec.Template
			add("StatefulSet", u.Spec.Selector)
		case *networkingv1.NetworkPolicy:
			policy = *u
			add("NetworkPolicy", &u.Spec.PodSelector)
		case *policyv1.PodDisruptionBudget:
			add("PodDisruptionBudget", u.Spec.Selector)
		case *corev1.Service:
			selectors["Service "+u.Name] = labels.SelectorFromSet(u.Spec.Selector)
		}
	}
	return pods, selectors, policy
}

// listening returns the ports at which a container listens for others, by its arguments.
func listening(t *testing.T, c corev1.Container) []int {
	t.Helper()
	var out []int
	for _, arg := range c.Args {
		name, address, _ := strings.Cut(arg, "=")
		if !strings.HasSuffix(name, "-bind-address") {
			continue
		}
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			t.Fatal(err)
		}
		if host == "127.0.0.1" {
			continue // nobody else reaches it
		}
		number, err := strconv.Atoi(port)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, number)
	}
	slices.Sort(out)
	return out
}

// allowed returns the ports of a container that a policy lets others connect to.
func allowed(t *testing.T, policy networkingv1.NetworkPolicy, c corev1.Container) []int {
	t.Helper()
	var out []int
	for _, rule := range policy.Spec.Ingress {
		for _, p := range rule.Ports {
			at := slices.IndexFunc(c.Ports, func(have corev1.ContainerPort) bool { return have.Name == p.Port.StrVal })
			if at < 0 {
				t.Errorf("the policy allows the port %s, and the container has none of that name", p.Port.StrVal)
				continue
			}
			out = append(out, int(c.Ports[at].ContainerPort))
		}
	}
	slices.Sort(out)
	return out
}

func TestWhatProtectsThePodsSelectsThemAndAllowsWhatTheyServe(t *testing.T) {
	t.Parallel()
	home := rbac.Options{OperatorNamespace: "home", ServiceAccount: "op", SecureMetrics: true}
	some := home
	some.SecureMetrics, some.Namespaces = false, object.Namespaces{"a"}
	sharded := home
	sharded.Shards = 3
	always := []string{"NetworkPolicy", "PodDisruptionBudget"}
	for name, tc := range map[string]struct {
		reason    string
		options   Options
		selectors []string
		ports     []int
	}{
		"Plain":       {"metrics are for whom the API server allows, and the kubelet probes", Options{Options: home}, []string{"Deployment", "Service op-metrics"}, []int{8080, 8081}},
		"Some":        {"metrics stay in the pod", Options{Options: some}, []string{"Deployment"}, []int{8081}},
		"Token":       {"who has the token may come from anywhere", Options{Options: some, MetricsTokenSecret: "x"}, []string{"Deployment", "Service op-metrics"}, []int{8080, 8081}},
		"Webhooks":    {"the API server calls them", Options{Options: home, Webhooks: Operator}, []string{"Deployment", "Service op-metrics", "Service op-webhooks"}, []int{8080, 8081, 9443}},
		"CertManager": {"another certificate is no other port", Options{Options: some, Webhooks: CertManager}, []string{"Deployment", "Service op-webhooks"}, []int{8081, 9443}},
		"OLM":         {"OLM makes the Service itself", Options{Options: home, Webhooks: OLM}, []string{"Deployment", "Service op-metrics"}, []int{8080, 8081, 9443}},
		"Shards":      {"each pod is protected", Options{Options: sharded}, []string{"StatefulSet", "Service op-metrics", "Service op-shards"}, []int{8080, 8081}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			running, err := OperatorObjects(nil, tc.options)
			if err != nil {
				t.Fatal(err)
			}
			pods, selectors, policy := selectorsOf(t, append(running, Webhooks(nil, tc.options)...))
			var got []string
			// Another operator may run in the namespace.
			other := tc.options
			other.ServiceAccount = "other"
			for name, s := range selectors {
				got = append(got, name)
				if !s.Matches(labels.Set(pods.Labels)) || s.Matches(labels.Set(other.podLabels())) {
					t.Errorf("%s: %s selects %s, and the pods have %v", tc.reason, name, s, pods.Labels)
				}
			}
			slices.Sort(got)
			if diff := cmp.Diff(slices.Sorted(slices.Values(append(tc.selectors, always...))), got); diff != "" {
				t.Errorf("%s: what selects pods (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.ports, listening(t, pods.Spec.Containers[0])); diff != "" {
				t.Errorf("%s: the ports (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.ports, allowed(t, policy, pods.Spec.Containers[0])); diff != "" {
				t.Errorf("%s: the ports that may be reached (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

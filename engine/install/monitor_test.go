package install

import (
	"bytes"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	"operetta.dev/engine/object"
	"operetta.dev/engine/rbac"
)

// A serviceMonitor is the resource by which the operator of Prometheus finds what to scrape, as far as this test reads it.
type serviceMonitor struct {
	Kind     string            `json:"kind"`
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     struct {
		Selector  metav1.LabelSelector `json:"selector"`
		Endpoints []endpoint           `json:"endpoints"`
	} `json:"spec"`
}

// An endpoint is a port of the Services that a ServiceMonitor selects.
type endpoint struct {
	Port        string `json:"port"`
	Path        string `json:"path"`
	Scheme      string `json:"scheme"`
	HonorLabels bool   `json:"honorLabels"`
}

// readMonitor returns the ServiceMonitor of config/prometheus.
func readMonitor(t *testing.T) serviceMonitor {
	t.Helper()
	text, err := os.ReadFile("../../config/prometheus/monitor.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var out serviceMonitor
	first, _, _ := bytes.Cut(text, []byte("\n---\n"))
	if err := yaml.Unmarshal(first, &out); err != nil {
		t.Fatal(err)
	}
	if out.Kind != "ServiceMonitor" {
		t.Fatalf("the file begins with a %s", out.Kind)
	}
	return out
}

func TestTheServiceMonitorScrapesTheServiceThatIsPrinted(t *testing.T) {
	t.Parallel()
	monitor := readMonitor(t)
	// The operator has labels for the namespaces of custom resources, which are not its own.
	if diff := cmp.Diff([]endpoint{{Port: "metrics", Path: "/metrics", Scheme: "https", HonorLabels: true}}, monitor.Spec.Endpoints); diff != "" {
		t.Errorf("what is scraped (-want +got):\n%s", diff)
	}
	selector, err := metav1.LabelSelectorAsSelector(&monitor.Spec.Selector)
	if err != nil {
		t.Fatal(err)
	}
	home := rbac.Options{OperatorNamespace: "operetta-system", ServiceAccount: "operetta", SecureMetrics: true}
	some := home
	some.SecureMetrics, some.Namespaces = false, object.Namespaces{"a"}
	sharded := home
	sharded.Shards = 3
	for name, tc := range map[string]struct {
		reason  string
		options Options
		// scraped are the Services with the port.
		scraped []string
	}{
		"Asking":   {"the API server says who may read them", Options{Options: home}, []string{"operetta-metrics"}},
		"Webhooks": {"their Service has another port", Options{Options: home, Webhooks: Operator}, []string{"operetta-metrics"}},
		"Shards":   {"each pod is behind the same Service", Options{Options: sharded}, []string{"operetta-metrics"}},
		"Token":    {"a token says it where the API server may not be asked", Options{Options: some, MetricsTokenSecret: "x"}, []string{"operetta-metrics"}},
		"Nobody":   {"nobody else reaches them, so Prometheus finds nothing rather than a target that is down", Options{Options: some}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			running, err := OperatorObjects(nil, tc.options)
			if err != nil {
				t.Fatal(err)
			}
			var scraped []string
			for _, o := range append(running, Webhooks(nil, tc.options)...) {
				s, is := o.(*corev1.Service)
				if !is || s.Namespace != monitor.Metadata.Namespace || !selector.Matches(labels.Set(s.Labels)) {
					continue
				}
				for _, port := range s.Spec.Ports {
					if port.Name == monitor.Spec.Endpoints[0].Port {
						scraped = append(scraped, s.Name)
					}
				}
			}
			if diff := cmp.Diff(tc.scraped, scraped); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

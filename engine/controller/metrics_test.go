package controller

import (
	"net"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
)

func TestAddressOfMetricsThatIsTakenEndsTheStart(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	// Nothing is asked of the cluster before.
	_, err = New(&rest.Config{Host: "https://127.0.0.1:1"}, Options{InProcess: true, MetricsAddress: taken.Addr().String()})
	if err == nil || !strings.Contains(err.Error(), "serving metrics") || !strings.Contains(err.Error(), taken.Addr().String()) {
		t.Errorf("the error is %v", err)
	}
}

func TestMetricsAreNotServedAtTheAddressThatMeansOff(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ address, reason string }{
		"no address": {"", "it is the default"},
		"0":          {off, "operators of kubebuilder are told so, and so are the probes of this one"},
	} {
		if _, err := New(away, Options{InProcess: true, MetricsAddress: row.address, HealthAddress: row.address}); err != nil {
			t.Errorf("%s: %v: %s", name, err, row.reason)
		}
	}
}

func TestACertificateThatIsMissingEndsTheStart(t *testing.T) {
	t.Parallel()
	_, err := New(away, Options{InProcess: true, MetricsAddress: "127.0.0.1:0", MetricsSecure: true, MetricsCertDir: t.TempDir()})
	if err == nil || !strings.Contains(err.Error(), "serving metrics") || !strings.Contains(err.Error(), "tls.crt") {
		t.Errorf("the error is %v", err)
	}
}

func TestTheMetricsOfAPackageEndWhenItIsWithdrawn(t *testing.T) {
	t.Parallel()
	m, err := New(away, Options{InProcess: true})
	if err != nil {
		t.Fatal(err)
	}
	p := load(t, "counted", "Counted")
	if err := m.Serve(p); err != nil {
		t.Fatal(err)
	}
	if n := seriesOf(t, "counted.example.com"); n == 0 {
		t.Error("there are no series of a controller")
	}
	if err := m.Withdraw(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if n := seriesOf(t, "counted.example.com"); n > 0 {
		t.Errorf("%d series are left of a controller that is gone", n)
	}
}

// seriesOf returns how many series of the engine a controller has.
func seriesOf(t *testing.T, controller string) int {
	t.Helper()
	r := prometheus.NewRegistry()
	r.MustRegister(measured)
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, f := range families {
		for _, s := range f.GetMetric() {
			for _, l := range s.GetLabel() {
				if l.GetName() == "controller" && l.GetValue() == controller {
					n++
				}
			}
		}
	}
	return n
}

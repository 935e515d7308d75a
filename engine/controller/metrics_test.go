package controller

import (
	"net"
	"strings"
	"testing"

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
	_, err = New(&rest.Config{Host: "https://127.0.0.1:1"}, Options{MetricsAddress: taken.Addr().String()})
	if err == nil || !strings.Contains(err.Error(), "serving metrics") || !strings.Contains(err.Error(), taken.Addr().String()) {
		t.Errorf("the error is %v", err)
	}
}

func TestACertificateThatIsMissingEndsTheStart(t *testing.T) {
	t.Parallel()
	_, err := New(away, Options{MetricsAddress: "127.0.0.1:0", MetricsSecure: true, MetricsCertDir: t.TempDir()})
	if err == nil || !strings.Contains(err.Error(), "serving metrics") || !strings.Contains(err.Error(), "tls.crt") {
		t.Errorf("the error is %v", err)
	}
}

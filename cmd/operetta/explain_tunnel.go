package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	streamhttp "k8s.io/streaming/pkg/httpstream"
)

// A tunnel leads from a port of this machine through the API server to a pod, as that of kubectl port-forward.
type tunnel struct {
	address string
	end     chan struct{}
}

// defaultMetricsPort is the port of a pod without a port of the name metrics: operetta install --namespace exposes none.
const defaultMetricsPort = 8080

// openTunnel opens a tunnel to the metrics port of the pod that holds the Lease of a namespace, until the process
// ends. It errors if that pod is unknown, or the user may not reach it.
func openTunnel(ctx context.Context, on target, f operatorFlags) (*tunnel, error) {
	api, err := kubernetes.NewForConfig(on.config)
	if err != nil {
		return nil, err
	}
	lease, err := api.CoordinationV1().Leases(f.namespace).Get(ctx, f.lease, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("which pod leads is in its Lease: %w", err)
	}
	name := podOf(lease)
	if name == "" {
		return nil, fmt.Errorf("no pod has the Lease %s", f.lease)
	}
	pod, err := api.CoreV1().Pods(f.namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	at := api.CoreV1().RESTClient().Post().Resource("pods").Namespace(f.namespace).Name(name).SubResource("portforward").URL()
	transport, upgrader, err := spdy.RoundTripperFor(on.config)
	if err != nil {
		return nil, err
	}
	dialer := spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, at)
	overWebsocket, err := portforward.NewSPDYOverWebsocketDialerForStreaming(at, on.config)
	if err != nil {
		return nil, err
	}
	dialer = portforward.NewFallbackDialerForStreaming(overWebsocket, dialer, func(err error) bool {
		return streamhttp.IsUpgradeFailure(err) || streamhttp.IsHTTPSProxyError(err)
	})
	return forward(ctx, dialer, metricsPortOf(pod))
}

// podOf returns the pod that has a Lease: client-go adds a random part to its name.
func podOf(lease *coordinationv1.Lease) string {
	if lease.Spec.HolderIdentity == nil {
		return ""
	}
	name, _, _ := strings.Cut(*lease.Spec.HolderIdentity, "_") // the name of a pod has none
	return name
}

// metricsPortOf returns the port at which a pod serves metrics.
func metricsPortOf(pod *corev1.Pod) int {
	for _, c := range pod.Spec.Containers {
		for _, p := range c.Ports {
			if p.Name == "metrics" {
				return int(p.ContainerPort)
			}
		}
	}
	return defaultMetricsPort
}

// forward leads from a free port of this machine to the port of a pod.
func forward(ctx context.Context, dialer streamhttp.Dialer, port int) (*tunnel, error) {
	ready, failed := make(chan struct{}), make(chan error, 1)
	f, err := portforward.NewOnAddressesForStreaming(dialer, []string{"127.0.0.1"}, []string{"0:" + strconv.Itoa(port)}, nil, ready, io.Discard, io.Discard)
	if err != nil {
		return nil, err
	}
	out := &tunnel{end: make(chan struct{})}
	go func() {
		defer close(out.end)
		failed <- f.ForwardPorts()
	}()
	select {
	case err := <-failed:
		return nil, fmt.Errorf("its pod cannot be reached: %w", err)
	case <-ctx.Done():
		return nil, fmt.Errorf("its pod cannot be reached: %w", ctx.Err())
	case <-ready:
	}
	ports, err := f.GetPorts()
	if err != nil {
		return nil, err
	}
	out.address = net.JoinHostPort("127.0.0.1", strconv.Itoa(int(ports[0].Local)))
	return out, nil
}

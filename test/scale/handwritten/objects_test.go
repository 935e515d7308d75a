package main

import (
	"encoding/json"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BenchmarkRender is the rendering of the eight objects, beside which the evaluation of the package is
// measured.
func BenchmarkRender(b *testing.B) {
	w := &WebApp{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "shop", UID: "1"},
		Spec: WebAppSpec{
			Image: "nginx:1.25", Port: 80, MaxUnavailable: 1,
			Env: map[string]string{"A": "1", "B": "2"}, Files: map[string]string{"index.html": "hello"}, Secrets: map[string]string{"TOKEN": "t"},
			Resources:   Resources{CPU: "100m", Memory: "128Mi"},
			Ingress:     Ingress{Enabled: true, Host: "shop.example.com", Path: "/"},
			Autoscaling: Autoscaling{Enabled: true, MinReplicas: 2, MaxReplicas: 10, TargetCPU: 80},
		},
	}
	r := renderer{probePath: "/"}
	b.ReportAllocs()
	for b.Loop() {
		for _, object := range []any{
			r.configMap(w), r.secret(w), r.serviceAccount(w), r.deployment(w), r.service(w), r.ingress(w), r.autoscaler(w), r.disruptionBudget(w),
		} {
			if object == nil {
				b.Fatal("an object is missing")
			}
		}
	}
	if _, err := json.Marshal(r.deployment(w)); err != nil {
		b.Fatal(err)
	}
}

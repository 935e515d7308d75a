package controller_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/controller"
)

func TestWhoConvertsHasAnAddress(t *testing.T) {
	t.Parallel()
	service := types.NamespacedName{Namespace: "system", Name: "webhooks"}
	byService := &apiextensionsv1.WebhookClientConfig{Service: &apiextensionsv1.ServiceReference{
		Namespace: "system", Name: "webhooks", Path: new("/convert"), Port: new(int32(443)),
	}}
	for name, tc := range map[string]struct {
		reason, address string
		service         types.NamespacedName
		want            *apiextensionsv1.WebhookClientConfig
	}{
		"Off":         {"without webhooks nobody converts", "", service, nil},
		"Service":     {"a Service is what an API server calls", ":9443", service, byService},
		"Both":        {"also if the address is known", "10.0.0.1:9443", service, byService},
		"Address":     {"an operator elsewhere is called by its address", "10.0.0.1:9443", types.NamespacedName{}, &apiextensionsv1.WebhookClientConfig{URL: new("https://10.0.0.1:9443/convert")}},
		"IPv6":        {"which may be an IPv6 address", "[fd00::1]:9443", types.NamespacedName{}, &apiextensionsv1.WebhookClientConfig{URL: new("https://[fd00::1]:9443/convert")}},
		"AllOfThem":   {"an address that only says where to listen is none", ":9443", types.NamespacedName{}, nil},
		"Unspecified": {"nor is this one", "0.0.0.0:9443", types.NamespacedName{}, nil},
		"IPv6Any":     {"nor that one", "[::]:9443", types.NamespacedName{}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := controller.Options{WebhookAddress: tc.address, WebhookCertificates: controller.WebhookCertificates{Service: tc.service}}.ConversionWebhook()
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

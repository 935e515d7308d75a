package install

import (
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"operetta.dev/engine/admission"
	"operetta.dev/engine/object"
)

// olmCertFolder is where OLM mounts the certificate that it makes for webhooks.
const olmCertFolder = "/tmp/k8s-webhook-server/serving-certs"

// The types of webhooks in a ClusterServiceVersion.
const (
	olmValidating = "ValidatingAdmissionWebhook"
	olmMutating   = "MutatingAdmissionWebhook"
	olmConversion = "ConversionWebhook"
)

// addWebhooks adds the webhooks of a configuration to what OLM makes. It gives them the namespaces of the OperatorGroup, and a Service with
// its own certificate. It has no match conditions, so a webhook that fails closed would keep the operator from its own writes while it does
// not answer.
func (b *Bundle) addWebhooks(u *unstructured.Unstructured, kind string, o Options) error {
	list, _, err := unstructured.NestedSlice(u.Object, "webhooks")
	if err != nil {
		return fmt.Errorf("bundle: %s %s: %w", u.GetKind(), u.GetName(), err)
	}
	for _, one := range list {
		from, _ := one.(map[string]any)
		if from["failurePolicy"] == "Fail" {
			return fmt.Errorf("bundle: webhook %s refuses what nobody answers for, and OLM has no match conditions, which keep the operator's own writes from that: leave --webhooks out, or admission.failurePolicy: \"Fail\" of the package", from["name"])
		}
		path, _, _ := unstructured.NestedString(from, "clientConfig", "service", "path")
		webhook := o.olmWebhook(kind, path)
		webhook["generateName"] = from["name"]
		for _, field := range []string{"rules", "failurePolicy", "matchPolicy", "sideEffects", "timeoutSeconds", "admissionReviewVersions", "reinvocationPolicy"} {
			if value, has := from[field]; has {
				webhook[field] = value
			}
		}
		b.webhooks = append(b.webhooks, webhook)
	}
	return nil
}

// olmWebhook returns a webhook of the operator.
func (o Options) olmWebhook(kind, path string) map[string]any {
	return map[string]any{
		"type": kind, "deploymentName": o.ServiceAccount, "containerPort": int64(servicePort), "targetPort": int64(webhookPort), "webhookPath": path,
	}
}

// addConversion adds the webhook that converts the versions of some definitions.
func (b *Bundle) addConversion(o Options) error {
	if len(b.converted) == 0 {
		return nil
	}
	if !o.Namespaces.All() {
		return fmt.Errorf("bundle: OLM converts the versions of %s only for an operator of all namespaces: leave --namespace or --webhooks out", b.converted[0])
	}
	webhook := o.olmWebhook(olmConversion, admission.ConvertPath)
	names := slices.Sorted(slices.Values(b.converted))
	webhook["generateName"], webhook["conversionCRDs"] = "convert."+names[0], object.Texts(names)
	webhook["sideEffects"], webhook["admissionReviewVersions"] = "None", []any{"v1"}
	b.webhooks = append(b.webhooks, webhook)
	return nil
}

// noteConversion notes a definition whose versions the operator converts.
func (b *Bundle) noteConversion(crd apiextensionsv1.CustomResourceDefinition) {
	if c := crd.Spec.Conversion; c != nil && c.Strategy == apiextensionsv1.WebhookConverter {
		b.converted = append(b.converted, crd.Name)
	}
}

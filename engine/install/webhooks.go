package install

import (
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"

	"operetta.dev/engine/admission"
	"operetta.dev/engine/crd"
	"operetta.dev/engine/policy"
	"operetta.dev/engine/rbac"
)

// Certificates says who makes the certificate of the webhooks.
type Certificates string

// Who makes the certificate of the webhooks, or that there are none.
const (
	NoWebhooks  Certificates = ""
	Operator    Certificates = "operator"
	CertManager Certificates = "cert-manager"
	// OLM makes it for the webhooks of a bundle, and their Service and configurations as well.
	OLM Certificates = "olm"
)

const (
	webhookPort = 9443
	servicePort = 443
	certFolder  = "/webhook-certificate"
	// reviewSeconds is how long the API server waits for a webhook: more than what an evaluation may take.
	reviewSeconds = 10
)

// A Kind is the kind of the custom resources of a package.
type Kind struct {
	CRD *apiextensionsv1.CustomResourceDefinition
	// FailsClosed says that a request is refused while nobody answers whether it is valid.
	FailsClosed bool
}

// Webhooks returns what the API server and the operator need for webhooks: the Service, the configurations,
// and the rights to keep the certificate, or the objects by which cert-manager makes it.
func Webhooks(kinds []Kind, o Options) []any {
	if o.Webhooks == NoWebhooks {
		return nil
	}
	var out []any
	switch o.Webhooks {
	case NoWebhooks, OLM:
	case CertManager:
		out = append([]any{o.webhookService()}, o.certManager()...)
	case Operator:
		out = append([]any{o.webhookService(), o.certificateSecret()}, o.certificateRights(kinds)...)
	}
	validating := &admissionregistrationv1.ValidatingWebhookConfiguration{
		TypeMeta: metav1.TypeMeta{APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: "ValidatingWebhookConfiguration"}, ObjectMeta: o.configurationMeta(),
	}
	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{
		TypeMeta: metav1.TypeMeta{APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: "MutatingWebhookConfiguration"}, ObjectMeta: o.configurationMeta(),
	}
	for _, k := range kinds {
		validating.Webhooks = append(validating.Webhooks, o.validating(k))
		mutating.Webhooks = append(mutating.Webhooks, o.mutating(k))
	}
	return append(out, validating, mutating)
}

// webhookName returns the name of the Service, of the Secret and of the rights on them.
func (o Options) webhookName() string {
	if o.Webhooks == OLM {
		return strings.ReplaceAll(o.ServiceAccount, ".", "-") + "-service" // as OLM names the Service of a Deployment
	}
	return o.ServiceAccount + "-webhooks"
}

// configurationName returns the name of the webhook configurations, which are cluster-scoped.
func (o Options) configurationName() string { return o.webhookName() + "." + o.OperatorNamespace }

// injectAnnotation has cert-manager write whom to trust.
const injectAnnotation = "cert-manager.io/inject-ca-from"

func (o Options) configurationMeta() metav1.ObjectMeta {
	out := metav1.ObjectMeta{Name: o.configurationName(), Labels: rbac.Labels}
	if o.Webhooks == CertManager {
		out.Annotations = map[string]string{injectAnnotation: o.OperatorNamespace + "/" + o.webhookName()}
	}
	return out
}

// webhookArgs returns the arguments of the operator about webhooks.
func (o Options) webhookArgs() []string {
	bind := fmt.Sprintf("--webhook-bind-address=:%d", webhookPort)
	switch o.Webhooks {
	case NoWebhooks:
		return nil
	case CertManager:
		return []string{bind, "--webhook-cert-dir=" + certFolder, "--webhook-service=" + o.OperatorNamespace + "/" + o.webhookName()}
	case OLM:
		return []string{bind, "--webhook-cert-dir=" + olmCertFolder, "--webhook-service=" + o.OperatorNamespace + "/" + o.webhookName()}
	case Operator:
	}
	name := o.OperatorNamespace + "/" + o.webhookName()
	return []string{bind, "--webhook-secret=" + name, "--webhook-service=" + name, "--webhook-configuration=" + o.configurationName()}
}

func (o Options) webhookService() *corev1.Service {
	return &corev1.Service{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}, ObjectMeta: o.named(o.webhookName()),
		Spec: corev1.ServiceSpec{Selector: o.podLabels(), Ports: []corev1.ServicePort{{Name: "webhooks", Port: servicePort, TargetPort: intstr.FromString("webhooks"), Protocol: corev1.ProtocolTCP}}},
	}
}

// certificateSecret returns the Secret of the certificate, which is empty: the operator has the right to change
// it, and none to create others. To apply it again changes nothing that the operator has written.
func (o Options) certificateSecret() *corev1.Secret {
	return &corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: o.named(o.webhookName()), Type: corev1.SecretTypeOpaque}
}

// Convert returns the definition of a kind whose versions the operator converts, or as it is without webhooks.
func (o Options) Convert(definition *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinition {
	if o.Webhooks == NoWebhooks || len(definition.Spec.Versions) < 2 {
		return definition
	}
	out := crd.WithConversion(definition, apiextensionsv1.WebhookClientConfig{Service: &apiextensionsv1.ServiceReference{
		Namespace: o.OperatorNamespace, Name: o.webhookName(), Path: new(admission.ConvertPath), Port: new(int32(servicePort)),
	}})
	if o.Webhooks == CertManager {
		if out.Annotations == nil {
			out.Annotations = map[string]string{}
		}
		out.Annotations[injectAnnotation] = o.OperatorNamespace + "/" + o.webhookName()
	}
	return out
}

// definitionRules returns the rights to tell the API server whom to trust when it has versions converted.
func definitionRules(kinds []Kind) []rbacv1.PolicyRule {
	var names []string
	for _, k := range kinds {
		if len(k.CRD.Spec.Versions) > 1 {
			names = append(names, k.CRD.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return []rbacv1.PolicyRule{{
		APIGroups: []string{apiextensionsv1.GroupName}, Resources: []string{"customresourcedefinitions"}, ResourceNames: names, Verbs: []string{"get", "patch"},
	}}
}

// certificateRights returns the rights on the Secret, on the configurations and on definitions, by their names.
func (o Options) certificateRights(kinds []Kind) []any {
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: o.ServiceAccount, Namespace: o.OperatorNamespace}}
	version := rbacv1.SchemeGroupVersion.String()
	role, binding := o.named(o.webhookName()), o.named(o.webhookName())
	wide := metav1.ObjectMeta{Name: o.configurationName(), Labels: rbac.Labels}
	return []any{
		&rbacv1.Role{TypeMeta: metav1.TypeMeta{APIVersion: version, Kind: "Role"}, ObjectMeta: role, Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{o.webhookName()}, Verbs: []string{"list", "watch", "update"},
		}}},
		&rbacv1.RoleBinding{TypeMeta: metav1.TypeMeta{APIVersion: version, Kind: "RoleBinding"}, ObjectMeta: binding, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name}, Subjects: subjects},
		&rbacv1.ClusterRole{TypeMeta: metav1.TypeMeta{APIVersion: version, Kind: "ClusterRole"}, ObjectMeta: wide, Rules: append([]rbacv1.PolicyRule{{
			APIGroups: []string{admissionregistrationv1.GroupName}, Resources: []string{"mutatingwebhookconfigurations", "validatingwebhookconfigurations"},
			ResourceNames: []string{wide.Name}, Verbs: []string{"list", "watch", "patch"},
		}}, definitionRules(kinds)...)},
		&rbacv1.ClusterRoleBinding{TypeMeta: metav1.TypeMeta{APIVersion: version, Kind: "ClusterRoleBinding"}, ObjectMeta: wide, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: wide.Name}, Subjects: subjects},
	}
}

// authorityLifetime is how long the authority is valid that signs the certificates of cert-manager: ten years.
const authorityLifetime = "87600h"

// authorityName is the common name of the authority. It is a constant, because it may have 64 characters at most, and a service account 54.
const authorityName = "operetta-webhooks-authority"

// certManager returns the objects by which cert-manager makes the certificate. An authority that stays signs it: whoever is called with a new
// certificate is told at once whom to trust, and a pod gets that certificate only after a minute or two, so that a certificate that signs
// itself would be trusted by nobody meanwhile.
func (o Options) certManager() []any {
	service := o.webhookName() + "." + o.OperatorNamespace
	object := func(kind, name string, spec map[string]any) any {
		u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
		u.SetAPIVersion("cert-manager.io/v1")
		u.SetKind(kind)
		u.SetName(name)
		u.SetNamespace(o.OperatorNamespace)
		u.SetLabels(rbac.Labels)
		return u
	}
	own, authority := o.webhookName(), o.webhookName()+"-authority"
	return []any{
		object("Issuer", authority, map[string]any{"selfSigned": map[string]any{}}),
		object("Certificate", authority, map[string]any{
			"isCA": true, "commonName": authorityName, "secretName": authority, "duration": authorityLifetime,
			"issuerRef": map[string]any{"kind": "Issuer", "name": authority},
		}),
		object("Issuer", own, map[string]any{"ca": map[string]any{"secretName": authority}}),
		object("Certificate", own, map[string]any{
			"secretName": own, "dnsNames": []any{service + ".svc", service + ".svc.cluster.local"},
			"issuerRef": map[string]any{"kind": "Issuer", "name": own},
		}),
	}
}

// webhook returns the webhook of a package with one of the verbs.
func (o Options) webhook(k Kind, verb, path string) admissionregistrationv1.MutatingWebhook {
	spec := k.CRD.Spec
	stored := crd.StorageVersion(k.CRD) // the API server converts requests for other versions first
	out := admissionregistrationv1.MutatingWebhook{
		Name: verb + "." + k.CRD.Name, FailurePolicy: new(admissionregistrationv1.Ignore), NamespaceSelector: &metav1.LabelSelector{}, MatchConditions: conditions,
		ClientConfig: admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Namespace: o.OperatorNamespace, Name: o.webhookName(), Path: &path, Port: new(int32(servicePort))}},
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
			Rule: admissionregistrationv1.Rule{
				APIGroups: []string{spec.Group}, APIVersions: []string{stored}, Resources: []string{spec.Names.Plural}, Scope: new(admissionregistrationv1.ScopeType(spec.Scope)),
			},
		}},
		MatchPolicy: new(admissionregistrationv1.Equivalent), SideEffects: new(admissionregistrationv1.SideEffectClassNone),
		TimeoutSeconds: new(int32(reviewSeconds)), AdmissionReviewVersions: []string{"v1"},
	}
	if spec.Scope == apiextensionsv1.ClusterScoped {
		out.Rules[0].Scope = new(admissionregistrationv1.ClusterScope)
	}
	if k.FailsClosed {
		out.FailurePolicy = new(admissionregistrationv1.Fail)
	}
	if where := policy.NamespaceSelector(o.Namespaces); where != nil {
		out.NamespaceSelector = where
	}
	return out
}

// conditions keep away from the webhooks what they would allow anyway, so that nothing of it depends on them:
// that a finalizer is removed from a resource, also while it is being deleted, and that the engine adds one.
var conditions = []admissionregistrationv1.MatchCondition{
	{Name: "is-not-being-deleted", Expression: `!has(object.metadata.deletionTimestamp)`},
	{Name: "changes-what-a-package-sees", Expression: `oldObject == null ||
has(object.spec) != has(oldObject.spec) || (has(object.spec) && object.spec != oldObject.spec) ||
has(object.metadata.labels) != has(oldObject.metadata.labels) || (has(object.metadata.labels) && object.metadata.labels != oldObject.metadata.labels) ||
has(object.metadata.annotations) != has(oldObject.metadata.annotations) || (has(object.metadata.annotations) && object.metadata.annotations != oldObject.metadata.annotations)`},
}

func (o Options) validating(k Kind) admissionregistrationv1.ValidatingWebhook {
	w := o.webhook(k, "validate", admission.ValidatePath)
	return admissionregistrationv1.ValidatingWebhook{
		Name: w.Name, ClientConfig: w.ClientConfig, Rules: w.Rules, FailurePolicy: w.FailurePolicy, MatchPolicy: w.MatchPolicy,
		NamespaceSelector: w.NamespaceSelector, SideEffects: w.SideEffects, TimeoutSeconds: w.TimeoutSeconds,
		AdmissionReviewVersions: w.AdmissionReviewVersions, MatchConditions: w.MatchConditions,
	}
}

func (o Options) mutating(k Kind) admissionregistrationv1.MutatingWebhook {
	w := o.webhook(k, "mutate", admission.MutatePath)
	w.ReinvocationPolicy = new(admissionregistrationv1.IfNeededReinvocationPolicy)
	return w
}

// webhookVolumes returns the volume of the certificate that cert-manager makes.
func (o Options) webhookVolumes() ([]corev1.Volume, []corev1.VolumeMount) {
	if o.Webhooks != CertManager {
		return nil, nil
	}
	const name = "webhook-certificate"
	source := corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: o.webhookName()}}
	return []corev1.Volume{{Name: name, VolumeSource: source}}, []corev1.VolumeMount{{Name: name, MountPath: certFolder, ReadOnly: true}}
}

// webhookPorts returns the port of the container that serves webhooks.
func (o Options) webhookPorts() []corev1.ContainerPort {
	if o.Webhooks == NoWebhooks {
		return nil
	}
	return []corev1.ContainerPort{{Name: "webhooks", ContainerPort: webhookPort, Protocol: corev1.ProtocolTCP}}
}

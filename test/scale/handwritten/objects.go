package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	autoscalingv2ac "k8s.io/client-go/applyconfigurations/autoscaling/v2"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	networkingv1ac "k8s.io/client-go/applyconfigurations/networking/v1"
	policyv1ac "k8s.io/client-go/applyconfigurations/policy/v1"
)

// configAnnotation of the pods changes with the configuration, and makes the servers roll.
const configAnnotation = "example.com/config"

// What the operator has made has a label, by which its cache selects.
const (
	nameLabel   = "app.kubernetes.io/name"
	managedName = "webapp"
)

// renderer renders the objects of a WebApp.
type renderer struct {
	// probePath is where a server is asked whether it is ready. It is what another version of this
	// operator would render in another way.
	probePath string
}

func selector(w *WebApp) map[string]string {
	return map[string]string{"app.kubernetes.io/instance": w.Name}
}

func labels(w *WebApp) map[string]string {
	return map[string]string{"app.kubernetes.io/instance": w.Name, nameLabel: managedName}
}

func owner(w *WebApp) *metav1ac.OwnerReferenceApplyConfiguration {
	return metav1ac.OwnerReference().WithAPIVersion(groupVersion.String()).WithKind(kindWebApp).
		WithName(w.Name).WithUID(w.UID).WithController(true).WithBlockOwnerDeletion(true)
}

func (renderer) configMap(w *WebApp) *corev1ac.ConfigMapApplyConfiguration {
	return corev1ac.ConfigMap(w.Name, w.Namespace).WithLabels(labels(w)).WithOwnerReferences(owner(w)).WithData(w.Spec.Files)
}

func (renderer) secret(w *WebApp) *corev1ac.SecretApplyConfiguration {
	data := map[string][]byte{}
	for k, v := range w.Spec.Secrets {
		data[k] = []byte(v)
	}
	return corev1ac.Secret(w.Name, w.Namespace).WithLabels(labels(w)).WithOwnerReferences(owner(w)).
		WithType(corev1.SecretTypeOpaque).WithData(data)
}

func (renderer) serviceAccount(w *WebApp) *corev1ac.ServiceAccountApplyConfiguration {
	return corev1ac.ServiceAccount(w.Name, w.Namespace).WithLabels(labels(w)).WithOwnerReferences(owner(w)).
		WithAutomountServiceAccountToken(false)
}

func (r renderer) deployment(w *WebApp) *appsv1ac.DeploymentApplyConfiguration {
	spec := appsv1ac.DeploymentSpec().
		WithSelector(metav1ac.LabelSelector().WithMatchLabels(selector(w))).
		WithTemplate(corev1ac.PodTemplateSpec().
			WithLabels(selector(w)).
			WithAnnotations(map[string]string{configAnnotation: checksum(w)}).
			WithSpec(corev1ac.PodSpec().
				WithServiceAccountName(w.Name).
				WithContainers(r.container(w)).
				WithVolumes(corev1ac.Volume().WithName("config").
					WithConfigMap(corev1ac.ConfigMapVolumeSource().WithName(w.Name)))))
	if !w.Spec.Autoscaling.Enabled {
		spec.WithReplicas(w.Spec.Replicas)
	}
	return appsv1ac.Deployment(w.Name, w.Namespace).WithLabels(labels(w)).WithOwnerReferences(owner(w)).WithSpec(spec)
}

func (r renderer) container(w *WebApp) *corev1ac.ContainerApplyConfiguration {
	c := corev1ac.Container().WithName("web").WithImage(w.Spec.Image).
		WithPorts(corev1ac.ContainerPort().WithName("http").WithContainerPort(w.Spec.Port)).
		WithEnvFrom(corev1ac.EnvFromSource().WithSecretRef(corev1ac.SecretEnvSource().WithName(w.Name))).
		WithResources(corev1ac.ResourceRequirements().WithRequests(corev1.ResourceList{
			corev1.ResourceCPU:    resource.MustParse(w.Spec.Resources.CPU),
			corev1.ResourceMemory: resource.MustParse(w.Spec.Resources.Memory),
		})).
		WithReadinessProbe(corev1ac.Probe().WithHTTPGet(corev1ac.HTTPGetAction().WithPath(r.probePath).WithPort(intstr.FromString("http")))).
		WithVolumeMounts(corev1ac.VolumeMount().WithName("config").WithMountPath("/etc/webapp"))
	for _, name := range slices.Sorted(maps.Keys(w.Spec.Env)) {
		c.WithEnv(corev1ac.EnvVar().WithName(name).WithValue(w.Spec.Env[name]))
	}
	return c
}

func (renderer) service(w *WebApp) *corev1ac.ServiceApplyConfiguration {
	return corev1ac.Service(w.Name, w.Namespace).WithLabels(labels(w)).WithOwnerReferences(owner(w)).
		WithSpec(corev1ac.ServiceSpec().WithSelector(selector(w)).
			WithPorts(corev1ac.ServicePort().WithName("http").WithPort(w.Spec.Port).WithTargetPort(intstr.FromString("http"))))
}

func (renderer) ingress(w *WebApp) *networkingv1ac.IngressApplyConfiguration {
	backend := networkingv1ac.IngressBackend().WithService(networkingv1ac.IngressServiceBackend().
		WithName(w.Name).WithPort(networkingv1ac.ServiceBackendPort().WithName("http")))
	spec := networkingv1ac.IngressSpec().WithRules(networkingv1ac.IngressRule().WithHost(w.Spec.Ingress.Host).
		WithHTTP(networkingv1ac.HTTPIngressRuleValue().WithPaths(networkingv1ac.HTTPIngressPath().
			WithPath(w.Spec.Ingress.Path).WithPathType(networkingv1.PathTypePrefix).WithBackend(backend))))
	spec.IngressClassName = w.Spec.Ingress.ClassName
	return networkingv1ac.Ingress(w.Name, w.Namespace).WithLabels(labels(w)).WithOwnerReferences(owner(w)).WithSpec(spec)
}

func (renderer) autoscaler(w *WebApp) *autoscalingv2ac.HorizontalPodAutoscalerApplyConfiguration {
	a := w.Spec.Autoscaling
	return autoscalingv2ac.HorizontalPodAutoscaler(w.Name, w.Namespace).WithLabels(labels(w)).WithOwnerReferences(owner(w)).
		WithSpec(autoscalingv2ac.HorizontalPodAutoscalerSpec().
			WithScaleTargetRef(autoscalingv2ac.CrossVersionObjectReference().WithAPIVersion("apps/v1").WithKind("Deployment").WithName(w.Name)).
			WithMinReplicas(a.MinReplicas).WithMaxReplicas(a.MaxReplicas).
			WithMetrics(autoscalingv2ac.MetricSpec().WithType("Resource").
				WithResource(autoscalingv2ac.ResourceMetricSource().WithName(corev1.ResourceCPU).
					WithTarget(autoscalingv2ac.MetricTarget().WithType("Utilization").WithAverageUtilization(a.TargetCPU)))))
}

func (renderer) disruptionBudget(w *WebApp) *policyv1ac.PodDisruptionBudgetApplyConfiguration {
	return policyv1ac.PodDisruptionBudget(w.Name, w.Namespace).WithLabels(labels(w)).WithOwnerReferences(owner(w)).
		WithSpec(policyv1ac.PodDisruptionBudgetSpec().
			WithMaxUnavailable(intstr.FromInt32(w.Spec.MaxUnavailable)).
			WithSelector(metav1ac.LabelSelector().WithMatchLabels(selector(w))))
}

// checksum changes with the configuration.
func checksum(w *WebApp) string {
	return digest(struct{ Files, Secrets map[string]string }{w.Spec.Files, w.Spec.Secrets})
}

// digest returns a digest of a value.
func digest(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // the types that are given here can be encoded
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// Package importer turns objects that exist as YAML into an operator package that renders the same objects: what
// kustomize and helm template print, or what kubectl has read from a cluster. A CustomResourceDefinition can become the
// kind of the package, and a ResourceGraphDefinition of kro a package.
//
//	result, err := importer.Import(ctx, objects, importer.Options{Package: scaffold.Package{Name: "shop", ...}})
//	result.Files  // the package, its tests and a sample resource
//	result.Notes  // what a person should know
//
// Nothing is lost silently. The package is rendered before it is returned, and an import that renders another object, or
// one object more or less, is an error that says which; what cannot be imported is refused with the reason. Import writes
// no file.
package importer

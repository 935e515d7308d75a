// Package packages serves operator packages that are objects of a cluster. A Package holds the files of
// an operator package, or names the ConfigMap that does. A Reconciler takes one Package one step further:
//
//	read       the files of the source become a snapshot, as the files of a folder do
//	examine    the snapshot is checked where it can do no harm, while reconciles of other Packages go on
//	accept     the kind is claimed, its CustomResourceDefinition is installed, the content is kept
//	serve      the controller of the kind uses the new version from now on
//	report     the status says what came of it, if that has changed
//
// What is not accepted changes nothing: the version before goes on. The accepted content is kept in a
// PackageRevision, so that it goes on after a restart as well. A deleted Package waits until its custom
// resources are gone.
//
// The package knows no controller and no worker process: package controller and the command give it a
// Server and an Examiner.
package packages

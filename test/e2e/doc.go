// Package e2e proves on a real control plane what users of Operetta rely on. It
// has only tests. Each starts the operetta binary as a child process on a
// namespace and under a user of its own, acts as a person with kubectl would,
// and looks at the objects, at the log, and at what the API server's audit log
// says about the operator's requests.
//
// The packages in the folder packages are whole operators, such as people write: a
// queue, a database, Kafka and its topics, teams, and a platform of them. The files
// life_*_test.go have their lives.
//
// Ids in the names, such as E7 or G1, are those of the scenarios that the project
// is held against: A crashes, B missed events, D rest, E living with others, F graph
// and verification, G deletion, H kinds that come and go, I cost, J security.
//
//	go test ./test/e2e                     // the first run builds a control plane
//	go test ./test/e2e -run Drift -v       // with the measured figures
//	go test ./test/e2e -short              // skips everything
package e2e

package testserver

import (
	"sync"
	"testing"
)

// packageNode is the node that the tests of one package share.
var packageNode struct {
	mu   sync.Mutex
	node *RabbitMQ
}

// PackageRabbitMQ returns one node for all tests of a package, to save the seconds of a start. It is up and has no alarm, whatever
// an earlier test did to it, but keeps that test's queues. Tests that use it do not run in parallel, if any of them disturbs it.
// [ClosePackageRabbitMQ] removes it, so a package that uses it needs a TestMain:
//
//	func TestMain(m *testing.M) {
//		goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
//			testserver.ClosePackageRabbitMQ()
//			os.Exit(code)
//		}))
//	}
func PackageRabbitMQ(t testing.TB) *RabbitMQ {
	t.Helper()
	packageNode.mu.Lock()
	defer packageNode.mu.Unlock()
	if packageNode.node == nil {
		packageNode.node = newRabbitMQ(t, RabbitMQConfig{})
	}
	r := packageNode.node
	if !r.up {
		r.Start(t)
	}
	if r.alarmed {
		r.MemoryAlarm(t, false)
	}
	return r
}

// ClosePackageRabbitMQ removes the node of [PackageRabbitMQ], if there is one. A node that cannot be removed is left to the
// watchdog, which sees that this process has ended.
func ClosePackageRabbitMQ() {
	packageNode.mu.Lock()
	defer packageNode.mu.Unlock()
	if packageNode.node != nil {
		_ = packageNode.node.remove()
		packageNode.node = nil
	}
}

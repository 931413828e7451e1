package sqs

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/caisson-go/caisson/queue"
)

// What each error of SQS means to the caller. nil is an error that repeating does not mend.
func TestExplain(t *testing.T) {
	t.Parallel()
	api := func(code, text string) error { return &smithy.GenericAPIError{Code: code, Message: text} }
	for _, c := range []struct {
		err  error
		want error
	}{
		{&types.QueueDoesNotExist{}, queue.ErrQueueNotFound},
		{api("AWS.SimpleQueueService.NonExistentQueue", ""), queue.ErrQueueNotFound},
		{&types.RequestThrottled{}, queue.ErrUnavailable},
		{&types.OverLimit{}, queue.ErrUnavailable},
		{&types.KmsThrottled{}, queue.ErrUnavailable},
		{api("ThrottlingException", "Rate exceeded"), queue.ErrUnavailable},
		{api("ServiceUnavailable", ""), queue.ErrUnavailable},
		{api("InternalFailure", ""), queue.ErrUnavailable},
		{api("ExpiredToken", ""), queue.ErrUnavailable},
		{api("InvalidSignatureException", "Signature expired: 2026 is now earlier than"), queue.ErrUnavailable},
		{&net.OpError{Op: "dial", Err: errors.New("connection refused")}, queue.ErrUnavailable},
		{fmt.Errorf("wrapped: %w", context.DeadlineExceeded), queue.ErrUnavailable},
		{&types.ReceiptHandleIsInvalid{}, queue.ErrLeaseLost},
		{&types.MessageNotInflight{}, queue.ErrLeaseLost},
		{api("InvalidParameterValue", "Value x for parameter ReceiptHandle is invalid. Reason: The receipt handle has expired."), queue.ErrLeaseLost},
		{api("AccessDenied", ""), nil},
		{api("SignatureDoesNotMatch", "The request signature we calculated does not match"), nil},
		{api("InvalidParameterValue", "Value 901 for parameter DelaySeconds is invalid."), nil},
		{&aws.MissingRegionError{}, nil},
	} {
		got := explain(c.err, "SendMessage", "jobs")
		if !errors.Is(got, c.want) && c.want != nil {
			t.Errorf("%v is explained as %v, want %v", c.err, got, c.want)
		}
		if c.want == nil && (errors.Is(got, queue.ErrUnavailable) || errors.Is(got, queue.ErrLeaseLost) || errors.Is(got, queue.ErrQueueNotFound)) {
			t.Errorf("%v is explained as %v", c.err, got)
		}
	}
	if f := faultOfCode("InvalidParameterValue", "Total VisibilityTimeout for the message is beyond the limit [43200 seconds]"); f != exceeded {
		t.Errorf("fault %d, want exceeded", f)
	}
}

func TestEntryErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		code   string
		sender bool
		want   fault
	}{{"InternalError", false, unavailable}, {"Whatever", false, unavailable}, {"Whatever", true, refused}, {"ReceiptHandleIsInvalid", true, stale}, {"AccessDenied", true, denied}} {
		f, err := entryError(types.BatchResultErrorEntry{Code: aws.String(c.code), SenderFault: c.sender})
		if f != c.want || err == nil {
			t.Errorf("%s, sender's fault %t: fault %d, want %d", c.code, c.sender, f, c.want)
		}
	}
}

package sqs

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/caisson-go/caisson/queue"
)

// fault is what an error of SQS means to us.
type fault uint8

const (
	refused     fault = iota // repeating it changes nothing
	unavailable              // network, 5xx: repeat it
	throttled                // repeat it later
	missing                  // no such queue
	denied                   // credentials or permissions
	stale                    // the receipt handle is no longer good
	exceeded                 // more visibility than the message has left
	cancelled                // by us
)

// faultOfCode judges an error code, of a whole request or of one entry of a batch, with its text.
func faultOfCode(code, text string) fault {
	if i := strings.LastIndexByte(code, '.'); i >= 0 {
		code = code[i+1:] // AWS.SimpleQueueService.NonExistentQueue and the like
	}
	switch code {
	case "QueueDoesNotExist", "NonExistentQueue":
		return missing
	case "RequestThrottled", "Throttling", "ThrottlingException", "ThrottledException", "RequestThrottledException", "RequestLimitExceeded",
		"TooManyRequestsException", "SlowDown", "OverLimit", "KmsThrottled", "KMSThrottled":
		return throttled
	case "InternalError", "InternalFailure", "InternalServerError", "ServiceUnavailable", "ServiceUnavailableException", "RequestTimeout",
		"RequestTimeoutException", "ExpiredToken", "ExpiredTokenException", "RequestExpired", "RequestTimeTooSkewed", "QueueDeletedRecently":
		return unavailable
	case "SignatureDoesNotMatch", "InvalidSignatureException":
		if strings.Contains(text, "Signature expired") || strings.Contains(text, "not yet current") {
			return unavailable // this machine's clock is off; the SDK corrects for that with the next call
		}
		return denied
	case "AccessDenied", "AccessDeniedException", "AuthorizationError", "UnrecognizedClientException", "InvalidClientTokenId",
		"MissingAuthenticationToken", "InvalidAccessKeyId", "OptInRequired",
		"KmsAccessDenied", "KmsDisabled", "KmsNotFound", "KmsInvalidState", "KmsInvalidKeyUsage", "KmsOptInRequired", "InvalidSecurity":
		return denied
	case "ReceiptHandleIsInvalid", "MessageNotInflight":
		return stale
	case "InvalidParameterValue":
		switch {
		case strings.Contains(text, "ReceiptHandle"), strings.Contains(text, "receipt handle"):
			return stale // expired, or not in flight
		case strings.Contains(text, "Total VisibilityTimeout"):
			return exceeded
		}
	}
	return refused
}

func faultOf(err error) fault {
	var noQueue *types.QueueDoesNotExist
	var api smithy.APIError
	var response *smithyhttp.ResponseError
	isResponse := errors.As(err, &response)
	switch {
	case errors.As(err, &noQueue):
		return missing
	case errors.As(err, &api):
		f := faultOfCode(api.ErrorCode(), api.ErrorMessage())
		if f != refused || !isResponse {
			return f
		}
		return faultOfStatus(response.HTTPStatusCode())
	case errors.Is(err, context.Canceled):
		return cancelled
	case isResponse:
		if f := faultOfStatus(response.HTTPStatusCode()); f != refused {
			return f
		}
		return unavailable // an answer that cannot be read
	}
	var noRegion *aws.MissingRegionError
	if errors.As(err, &noRegion) {
		return refused
	}
	return unavailable // connections, timeouts, credentials that cannot be fetched
}

func faultOfStatus(status int) fault {
	switch {
	case status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable:
		return throttled
	case status >= 500, status == http.StatusRequestTimeout:
		return unavailable
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return denied
	}
	return refused
}

// explain puts err of a call into the words of package queue. action is the name of the IAM action.
func explain(err error, action, name string) error {
	return explainFault(faultOf(err), err, action, name)
}

func explainFault(f fault, err error, action, name string) error {
	switch f {
	case missing:
		return fmt.Errorf("queue %q: %w", name, queue.ErrQueueNotFound)
	case throttled:
		return fmt.Errorf("%s on queue %q was throttled: %w: %w", action, name, queue.ErrUnavailable, err)
	case unavailable:
		return fmt.Errorf("%s on queue %q: %w: %w", action, name, queue.ErrUnavailable, err)
	case denied:
		return fmt.Errorf("%s on queue %q is not allowed with these credentials: grant sqs:%s on that queue, and on its key if it is encrypted: %w",
			action, name, action, err)
	case stale:
		return fmt.Errorf("%s on queue %q: %w", action, name, queue.ErrLeaseLost)
	}
	return fmt.Errorf("%s on queue %q: %w", action, name, err)
}

// entryError is what SQS says of one entry of a batch that was answered with success.
func entryError(e types.BatchResultErrorEntry) (fault, error) {
	code, text := aws.ToString(e.Code), aws.ToString(e.Message)
	f := faultOfCode(code, text)
	if f == refused && !e.SenderFault {
		f = unavailable
	}
	return f, fmt.Errorf("%s: %s", code, text)
}

"""Which of scikit-learn's checks FairClassifier passes; those that it cannot pass have a reason."""

import pytest
from sklearn.utils.estimator_checks import check_estimator

import evenhand as eh

NO_GROUPS = "fit needs the group of each row, and scikit-learn's checks hand over none"
NO_OUTCOME = "which of two texts is the good outcome has to be said (pos_label)"

WITHOUT_GROUPS = (
    "check_classifier_data_not_an_array",
    "check_classifiers_train",
    "check_dict_unchanged",
    "check_dont_overwrite_parameters",
    "check_dtype_object",
    "check_estimators_dtypes",
    "check_estimators_fit_returns_self",
    "check_estimators_nan_inf",
    "check_estimators_overwrite_params",
    "check_estimators_pickle",
    "check_f_contiguous_array_estimator",
    "check_fit2d_1feature",
    "check_fit2d_predict1d",
    "check_fit_check_is_fitted",
    "check_fit_idempotent",
    "check_fit_score_takes_y",
    "check_n_features_in",
    "check_n_features_in_after_fitting",
    "check_positive_only_tag_during_fit",
    "check_readonly_memmap_input",
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weights_list",
    "check_sample_weights_not_an_array",
    "check_sample_weights_not_overwritten",
    "check_sample_weights_pandas_series",
    "check_sample_weights_shape",
    "check_supervised_y_2d",
)


@pytest.mark.thorough
def test_the_checks_that_fail_are_listed():
    expected = dict.fromkeys(WITHOUT_GROUPS, NO_GROUPS) | {"check_classifiers_classes": NO_OUTCOME}
    model = eh.FairClassifier(eh.Stumps())
    results = check_estimator(model, expected_failed_checks=expected, on_fail=None, on_skip=None)
    assert [one["check_name"] for one in results if one["status"] == "failed"] == []
    assert sum(one["status"] == "passed" for one in results) > 20
